"""Positions: how the model tells places apart."""
