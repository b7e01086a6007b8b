"""Look-ahead and information: how fast, how good a choice, how good a result. See ``__main__``."""
