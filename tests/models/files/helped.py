"""Work for a helper process of the tests: it does what the request says."""

from __future__ import annotations

import os
import time

from attention_models.files import helper_work
from attention_models.files.helper_work import Note, serve_requests


def work(request: str, note: Note) -> str:
    note("the file")
    if request == "spin":
        while True:
            pass
    if request == "sleep":
        time.sleep(600)
    if request == "grow":
        held = []
        while True:
            held.append(bytearray(b"x") * (1 << 24))
    if request == "long":
        return "x" * 2_000_000
    if request == "fall":
        os.abort()
    if request == "fail":
        raise ValueError
    if request == "print":
        print("printed", end="", flush=True)
    return f"{request} by {os.getpid()}"


def serve() -> None:
    if "LEEWAY" in os.environ:
        helper_work.leeway = lambda: float(os.environ["LEEWAY"])
    serve_requests(work, float(os.environ.get("IDLE_SECONDS", "600")))
