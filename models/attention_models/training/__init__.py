"""Trainings of the textbook transformer, and the recipes that made the shipped weights (README.md beside this file)."""
