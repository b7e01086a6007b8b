"""What one call decides, measured: regret by trials and by cost, against our own parts and against other libraries."""
