"""What a panel shows, as a short script of plain PyTorch with the numbers on screen."""
