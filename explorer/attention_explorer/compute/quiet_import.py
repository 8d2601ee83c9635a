"""Importing torch and transformers in a thread without stopping the others.

Two things in it keep the interpreter's lock for long, and the window would stand still meanwhile (measured on two busy
cores): loading torch's library, 0.1 to 0.5 s, and full garbage collections, which walk ever more objects that all live
as long as the process: six of 0.1 to 0.5 s during the import, and one now and then ever after.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from attention_models.files.collecting import deferred


@contextmanager
def quiet_import() -> Iterator[None]:
    """Around an import of torch: what it leaves in memory is never examined by the garbage collector.

    Nothing else is left out of its sight for good: where all was imported before, garbage may be among what is there.
    """
    _load_library("torch", "lib/libtorch_python.so")
    before = len(sys.modules)
    with deferred():
        try:
            yield
        finally:
            if len(sys.modules) > before:
                gc.freeze()


def _load_library(package: str, name: str) -> None:
    """Load a package's shared library through a call that, unlike `import`, lets other threads run.

    Where that fails nothing is said: the import that follows tells why.
    """
    spec = find_spec(package) if sys.platform == "linux" and package not in sys.modules else None
    if spec is None or spec.origin is None:
        return
    load = ctypes.CDLL(None).dlopen
    load.argtypes, load.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
    load(os.fsencode(Path(spec.origin).parent / name), os.RTLD_NOW)
