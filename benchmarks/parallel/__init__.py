"""Eight asynchronous workers in simulated time: how much sooner they find what one finds, and who finds it first."""
