"""Length: quality against sentence length."""
