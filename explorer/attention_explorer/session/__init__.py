"""What is on screen as one frozen value, and the only ways in which it changes."""
