"""A lesson in the window: its column, its questions, and what is covered until they are answered."""
