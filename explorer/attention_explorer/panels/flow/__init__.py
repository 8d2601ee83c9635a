"""The whole model in one picture, and one block of it box by box."""
