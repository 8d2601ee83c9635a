"""Running a model and keeping what its attention weights depend on."""
