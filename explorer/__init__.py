"""The Qt application: renders what the engine computed and asks it for more. Never imports torch."""

__version__ = "0.1.0"
