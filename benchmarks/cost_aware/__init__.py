"""Cost-aware search measured: cost models, what is saved against plain EI, and what is found within a budget."""
