"""The tour: a bar that says each step, a ring about what it points at, and the figures in its sentences."""
