"""The trust strip: whether the figures on screen can be believed."""
