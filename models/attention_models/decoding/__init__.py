"""Letting a model write: greedy, sampling, beam search, one step at a time."""
