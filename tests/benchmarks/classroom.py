"""A classroom on one computer: many installations of one file, each with a person, started together without a network.

    xvfb-run -a -s "-noreset -screen 0 1280x800x24" \\
        python tests/benchmarks/classroom.py dist/attention-explorer_0.1.0_amd64.deb

The file is unpacked once and linked into a folder for each seat. An administrator's presets name a folder of
checkpoints that nobody may write. First all of them run a sentence and write its weights, which have to be the same to
the last bit; then all of them open their window, and when the last one is seen their memory is counted while they stand
open. Times are those of one computer that does the work of all: each seat's own is the processor's.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy
import psutil

SECONDS = 1800  # that all of them may take
SENTENCE = ["--checkpoint", "story-gpt", "--text", "Once upon a time there was a little girl"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="the .deb or the .tar.xz")
    parser.add_argument("--seats", type=int, default=30)
    args = parser.parse_args()
    if shutil.which("xdotool") is None or not os.environ.get("DISPLAY"):
        print("needs xdotool and a display", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="classroom-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        began = time.monotonic()
        seats = install(args.file.resolve(), folder, args.seats)
        print(f"{len(seats)} installations from {args.file.name} in {time.monotonic() - began:.1f} s")
        presets = folder / "presets.toml"
        (folder / "share").mkdir(mode=0o555)
        presets.write_text(f'theme = "dark"\noffline = true\ncheckpoints = "{folder / "share"}"\n', encoding="utf-8")
        run_a_sentence(seats, folder, presets)
        open_windows(seats, folder, presets)
    return 0


def install(file: Path, folder: Path, seats: int) -> list[Path]:
    """The program of each seat. All hold the same files, by links."""
    first = folder / "seat 1"
    first.mkdir()
    if file.suffix == ".deb":
        subprocess.run(["dpkg-deb", "--extract", file, first], check=True)
    else:
        subprocess.run(["tar", "--xz", "--extract", "--directory", first, "--file", file], check=True)
    (program,) = (path for path in first.rglob("attention-explorer") if path.is_file() and not path.is_symlink())
    for number in range(2, seats + 1):
        subprocess.run(["cp", "--archive", "--link", first, folder / f"seat {number}"], check=True)
    return [folder / f"seat {number}" / program.relative_to(first) for number in range(1, seats + 1)]


def start(program: Path, home: Path, presets: Path, platform: str, *arguments: str) -> psutil.Popen:
    """Start it for a person, cut off from the network."""
    home.mkdir(exist_ok=True)
    places = {"HOME": str(home), "ATTENTION_EXPLORER_HOME": str(home), "ATTENTION_EXPLORER_PRESETS": str(presets)}
    display = {name: os.environ[name] for name in ("DISPLAY", "XAUTHORITY") if name in os.environ}
    environment = {**places, **display, "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "QT_QPA_PLATFORM": platform}
    command = ["unshare", "--map-root-user", "--net", str(program), *arguments]
    output = subprocess.DEVNULL
    return psutil.Popen(command, cwd=home, env=environment, stdout=output, stderr=output)


def run_a_sentence(seats: list[Path], folder: Path, presets: Path) -> None:
    """All at once; raises RuntimeError where one fails, or says something else than the others."""
    began = time.monotonic()
    started, used = [], []
    for number, program in enumerate(seats):
        weights = folder / f"weights {number}.npz"
        started.append(
            start(program, folder / f"home {number}", presets, "offscreen", *SENTENCE, "--weights", str(weights))
        )
    for process in started:
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise RuntimeError(f"one of them ended with {os.waitstatus_to_exitcode(status)}")
        used.append(usage.ru_utime + usage.ru_stime)
    digests = set()
    for number in range(len(seats)):
        with numpy.load(folder / f"weights {number}.npz") as file:
            arrays = (file[name] for name in sorted(file) if file[name].dtype.kind == "f")
            digests.add(hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest())
    if len(digests) != 1:
        raise RuntimeError(f"they found {len(digests)} kinds of weights")
    took = time.monotonic() - began
    print(f"a sentence: {took:.1f} s for all, {statistics.median(used):.1f} s of the processor each, the same weights")


def open_windows(seats: list[Path], folder: Path, presets: Path) -> None:
    """All at once, until all are seen."""
    began = time.monotonic()
    started = [start(program, folder / f"home {number}", presets, "xcb") for number, program in enumerate(seats)]
    try:
        seen: dict[int, float] = {}
        while len(seen) < len(started):
            for process in started:
                if process.poll() is not None:
                    raise RuntimeError(f"one of them ended with {process.returncode}")
                if process.pid not in seen and has_window(process.pid):
                    seen[process.pid] = time.monotonic() - began
            if time.monotonic() - began > SECONDS:
                raise RuntimeError(f"{len(started) - len(seen)} windows were not seen")
            time.sleep(0.2)
        time.sleep(5.0)  # what a window still does once it is seen
        processes = [one for process in started for one in (process, *process.children(recursive=True))]
        memory = [one.memory_full_info() for one in processes]
        print(f"windows: the first after {min(seen.values()):.1f} s, the last after {max(seen.values()):.1f} s")
        print(f"memory: {sum(one.pss for one in memory) / 1e9:.2f} GB for all, what they share counted once")
        private = [one.uss for one in memory]
        print(f"        {statistics.median(private) / 1e6:.0f} MB of its own each, at most {max(private) / 1e6:.0f}")
    finally:
        for process in started:
            process.kill()
            process.wait()


def has_window(pid: int) -> bool:
    search = ["xdotool", "search", "--all", "--onlyvisible", "--pid", str(pid), "--name", "Attention Explorer"]
    return subprocess.run(search, capture_output=True).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
