"""What a class sees beside the window: a second window that mirrors panels, and what the teacher points with."""
