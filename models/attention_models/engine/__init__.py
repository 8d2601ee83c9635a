"""Answers requests for one open model and its last run."""
