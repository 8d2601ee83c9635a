"""Variance: why scores are divided by the square root of d."""
