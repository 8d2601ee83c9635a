"""Decode: writing step by step."""
