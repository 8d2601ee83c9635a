"""Tokens as people see them, what is checked in a tokenizer, and chat templates."""
