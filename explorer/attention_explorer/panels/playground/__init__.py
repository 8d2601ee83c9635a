"""Playground: a small transformer learns a task while one looks on."""
