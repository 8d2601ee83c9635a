"""One file a panel. A panel renders the state and emits intents; it knows no other panel."""
