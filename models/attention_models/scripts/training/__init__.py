"""What the playground shows as PyTorch scripts that run by themselves."""
