"""Quality against sentence length."""
