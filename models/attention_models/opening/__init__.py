"""From a name to an open model, with reasons where that fails."""
