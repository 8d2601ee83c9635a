"""Our own models, written to be read: each file is one idea of one paper."""
