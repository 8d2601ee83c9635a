"""The command line: its options, and what it does without a window."""
