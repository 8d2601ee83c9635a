"""Cell: one cell's arithmetic, from q and k to the weight, the write and its effect on a logit."""
