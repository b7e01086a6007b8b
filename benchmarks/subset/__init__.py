"""Subsets of the trials for long searches: what they save and what they cost. See ``__main__``."""
