"""What each head, layer and token does to what the model says."""
