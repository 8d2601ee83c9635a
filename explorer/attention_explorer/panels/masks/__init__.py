"""Masks: other masks and a scale on the scores, acting on the live model."""
