"""A file of texts, read through the open model."""
