"""The figures that lessons ask for by name."""
