"""Weights as a map: whole, or in tiles."""
