"""Weights as a map, whole or in tiles: `heat_map.HeatMap` is the widget, and each other file one of its parts."""
