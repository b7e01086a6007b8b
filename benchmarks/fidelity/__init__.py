"""Search over fidelities: what cheap evaluations save. See ``__main__``."""
