"""The recipes that made the shipped weights. README.md beside this file says what ran and how to run it again."""
