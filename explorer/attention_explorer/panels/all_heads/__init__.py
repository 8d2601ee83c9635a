"""All heads, as thumbnails in one colour range."""
