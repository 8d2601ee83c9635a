"""What a model is made of, read off one pass of it: which operations ran, in which modules, on what."""
