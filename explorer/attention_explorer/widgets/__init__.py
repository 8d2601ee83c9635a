"""Painted widgets. They take arrays and plain values, emit signals, and know nothing of models or sessions."""
