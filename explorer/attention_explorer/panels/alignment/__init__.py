"""Align: translation, ribbons from each word to the words that it was written from."""
