"""Do the tests still find old faults? Takes mends back, one at a time, and runs the tests that came with them.

    python tests/benchmarks/seeded_faults.py              all of FAULTS, in a worktree of its own
    python tests/benchmarks/seeded_faults.py 9b6b090d     these commits alone
    python tests/benchmarks/seeded_faults.py --all        where the tests of the mend find nothing, all short ones run

For each it says whether the tests of `.ci/run` find it; if not, whether those marked `full` do. A mend that cannot
be taken back from the code of today says so, and counts for nothing. Exits with 1 where a fault is found by none.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

FAULTS = (
    *("731e86b9", "85a8438f", "8a9ea9d8", "04c4dfd5", "6865e3cd", "b2b953f7", "5efc4688", "33b712ad", "65499a01"),
    *("db2d4905", "67e4d6de", "235c67fa", "6ceaac68", "4c3ef155", "10e18486", "21d464c8", "0367ba81", "d175d306"),
    *("203eafcf", "a9520c29", "374ba6fa", "e45f9d4f", "9b6b090d", "45b378d2", "c7431a60", "d7f37233", "b6fcd8e5"),
    *("53340f1c", "33725ada", "47bc9748", "549e7ca1", "16607865", "2cdb5b8c", "b459872e", "61183cfe", "3a9c61a3"),
    *("33554c02",),
)
"""Commits that mended one fault each, and brought a test of it."""

SHORT, FULL = "not full and not long and not bundle", "full and not long and not bundle"


def git(tree: Path, *words: str, check: bool = True) -> str:
    done = subprocess.run(["git", *words], cwd=tree, capture_output=True, text=True, check=check)
    return done.stdout.strip()


def take_back(tree: Path, commit: str) -> list[str] | None:
    """Undo `commit` in the program alone; the files of tests that it changed, or None where it cannot be undone."""
    git(tree, "revert", "--no-commit", commit, check=False)
    tests = git(tree, "diff", "HEAD", "--name-only", "--", "tests/**/test_*.py").split()
    git(tree, "checkout", "HEAD", "--", "tests", "docs", "resources", "README.md", "CHANGELOG.md", check=False)
    unmerged = git(tree, "diff", "--name-only", "--diff-filter=U")
    return None if unmerged or not git(tree, "diff", "HEAD", "--name-only") else tests


def fails(tree: Path, tests: list[str], chosen: str) -> bool:
    """Whether one of the tests that are `chosen` does."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "auto", "--dist", "worksteal", "-m", chosen, *tests]
    environ = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(tree)}
    code = subprocess.run(command, cwd=tree, env=environ, capture_output=True, check=False).returncode
    return code not in (0, 5)  # 5: there are none


def put_back(tree: Path) -> None:
    git(tree, "revert", "--abort", check=False)
    git(tree, "reset", "--hard", "HEAD")


def outcome(tree: Path, commit: str, all_tests: bool) -> str:
    tests = take_back(tree, commit)
    if tests is None:
        return "cannot be taken back"
    if not tests:
        return "brought no test"
    if fails(tree, tests, SHORT):
        put_back(tree)
        return "fails without it too" if fails(tree, tests, SHORT) else "found"
    if all_tests and fails(tree, [], SHORT):
        return "found by another test"
    return "found in full" if fails(tree, tests, FULL) else "not found"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("commits", nargs="*", default=FAULTS)
    parser.add_argument("--all", action="store_true", help="run all short tests where those of the mend find nothing")
    given = parser.parse_args()
    said: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        git(ROOT, "worktree", "add", "--detach", str(tree), "HEAD")
        try:
            for commit in given.commits:
                found = outcome(tree, commit, given.all)
                said[found] += 1
                print(f"{commit}  {found:22} {git(ROOT, 'log', '-1', '--format=%s', commit)}", flush=True)
                put_back(tree)
        finally:
            git(ROOT, "worktree", "remove", "--force", str(tree))
    print(", ".join(f"{count} {found}" for found, count in said.items()))
    return 1 if said["not found"] else 0


if __name__ == "__main__":
    sys.exit(main())
