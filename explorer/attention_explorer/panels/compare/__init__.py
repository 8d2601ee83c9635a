"""Two states side by side: A, which is open, and B."""
