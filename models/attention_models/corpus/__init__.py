"""A file of texts, read through a model: means of every head, and where each does something most."""
