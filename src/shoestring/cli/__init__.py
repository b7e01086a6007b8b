"""The command line interface; ``main`` is its entry point."""
