"""Choosing a checkpoint: what there is to choose from, and what each one is, before anything is loaded."""
