"""The import of torch beside a living window. In processes of their own: a process imports torch once."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from attention_explorer.compute.quiet_import import quiet_import

ROOT = Path(__file__).resolve().parents[3]

WATCHED = """
import gc, sys, threading
from attention_explorer.compute.worker import open_engine

full = []
gc.callbacks.append(lambda phase, info: full.append(phase) if info["generation"] == 2 and phase == "start" else None)
worker = threading.Thread(target=open_engine)
worker.start()
worker.join()
print("torch" in sys.modules, len(full), gc.isenabled(), gc.get_freeze_count() > 100_000)
"""


@pytest.mark.full
def test_no_full_collection_runs_while_torch_is_imported():
    done = subprocess.run([sys.executable, "-c", WATCHED], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "0", "True", "True"]


@pytest.mark.skipif(sys.platform != "linux", reason="the library is loaded beforehand only there")
def test_torchs_library_is_there_before_the_import():
    program = """
from attention_explorer.compute.quiet_import import quiet_import
with quiet_import():
    print("libtorch_python" in open("/proc/self/maps").read())
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_an_import_that_fails_fails_as_it_would_and_the_collector_goes_on():
    with pytest.raises(ModuleNotFoundError, match="no_such_package"), quiet_import():
        import no_such_package  # type: ignore[import-not-found]  # noqa: F401
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    try:
        with quiet_import():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
