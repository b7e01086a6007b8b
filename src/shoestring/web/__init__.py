"""The page: studies in a browser, live, and ask and tell over HTTP. Needs the extra ``web``."""
