"""When to stop: how good the bound on the regret is, and what stopping by it saves and costs."""
