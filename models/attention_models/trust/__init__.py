"""A run held against the model's own eager path."""
