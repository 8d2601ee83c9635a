"""The one attention function: scores, weights, masks and outputs, and pictures of them made piece by piece."""
