"""Next: the likeliest tokens."""
