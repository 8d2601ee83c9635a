"""Requests, answers and the plain values they are made of: frozen, NumPy and plain Python, no torch."""
