"""Input: the text, a conversation or a picture, and its tokens."""
