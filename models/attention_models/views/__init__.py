"""One module a view: what a panel shows of a run, computed."""
