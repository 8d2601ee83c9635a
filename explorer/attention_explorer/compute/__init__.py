"""Between the window and the engine: one slot a lane, one thread, one queued signal."""
