"""A hub that speaks Hugging Face's language: looking up, fetching."""
