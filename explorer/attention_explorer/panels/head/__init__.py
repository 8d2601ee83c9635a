"""Head: the selected head's weights."""
