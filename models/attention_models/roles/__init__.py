"""What heads do: how much each attends to something, over one run or over a set of texts."""
