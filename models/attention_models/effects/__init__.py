"""What a part of a model does to what it says: ablated, patched, attributed, read off early."""
