"""Lookup: attention as a soft dictionary."""
