"""How soon the frozen program shows its window, beside the same from source.

    xvfb-run -a -s "-noreset -screen 0 1280x800x24" \\
        python tests/benchmarks/start.py dist/attention-explorer/attention-explorer

Both are started in turn, each from a home of its own, until xdotool sees the window; the figure is the median of the
ratios of neighbours, since times are wall-clock and no two machines are alike. The first pair, which reads from a cold
disk, is not counted. Beside it stands the ratio of the processor's time until then.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
AIM = 1.3  # of the source's time
SECONDS = 300  # that a window may take


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--pairs", type=int, default=5)
    args = parser.parse_args()
    if shutil.which("xdotool") is None or not os.environ.get("DISPLAY"):
        print("needs xdotool and a display", file=sys.stderr)
        return 1
    walls, processors = [], []
    for pair in range(args.pairs + 1):
        frozen = until_window([str(args.program.resolve())])
        source = until_window([sys.executable, "-m", "attention_explorer"])
        print(f"frozen {frozen[0]:6.2f} s ({frozen[1]:.2f} of the processor)", end="   ")
        print(f"source {source[0]:6.2f} s ({source[1]:.2f})", "   not counted" if pair == 0 else "")
        if pair:
            walls.append(frozen[0] / source[0])
            processors.append(frozen[1] / source[1])
    print(f"time to the first window, frozen / source: {statistics.median(walls):.2f} (aim {AIM})")
    print(f"time of the processor, frozen / source:    {statistics.median(processors):.2f}")
    return 0


def until_window(command: list[str]) -> tuple[float, float]:
    """Seconds from the start until there is a visible window, and those of the processor."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        environment = {**os.environ, "HOME": home, "ATTENTION_EXPLORER_HOME": home, "QT_QPA_PLATFORM": "xcb"}
        began = time.monotonic()
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            search = ["xdotool", "search", "--all", "--onlyvisible", "--pid", str(process.pid)]
            search += ["--name", "Attention Explorer"]
            while subprocess.run(search, capture_output=True).returncode:
                if process.poll() is not None or time.monotonic() - began > SECONDS:
                    raise RuntimeError(f"no window of {command[0]} was seen")
                time.sleep(0.01)
            took = time.monotonic() - began
            times = psutil.Process(process.pid).cpu_times()
            return took, times.user + times.system
        finally:
            process.kill()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
