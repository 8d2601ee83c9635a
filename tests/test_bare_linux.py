"""A Linux without Qt's libraries: what shows no window runs all the same, and all else says what is missing."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from attention_explorer.missing_libraries import PACKAGES

ROOT = Path(__file__).resolve().parents[1]
SHORT = ("--checkpoint", "story-gpt", "--text", "Tom")

WITHOUT_QT = """
import sys

class NoQt:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("PySide6", "pyqtgraph"):
            raise ImportError(f"{name} is asked for")

sys.meta_path.insert(0, NoQt())
from attention_explorer.app import main
for command in COMMANDS:
    try:
        code = main(command)
    except SystemExit as ended:
        code = ended.code or 0
    print("ended with", code, *command, file=sys.stderr, flush=True)
"""


def test_what_shows_no_window_loads_nothing_of_qt(tmp_path):
    (tmp_path / "texts.txt").write_text("Tom went\nA cat sat\n", encoding="utf-8")
    path = {name: str(tmp_path / name) for name in ("a.npz", "a.attn", "a.csv", "r.csv", "m.npz", "c.csv", "texts.txt")}
    commands = [
        ["--help"],
        ["--version"],
        ["--diagnose"],
        [*SHORT, "--decode", "2"],
        [*SHORT, "--weights", path["a.npz"]],
        [*SHORT, "--save", path["a.attn"]],
        [*SHORT, "--ablate", path["a.csv"]],
        ["--checkpoint", "dates-luong", "--roles", path["r.csv"]],
        ["--checkpoint", "story-gpt", "--corpus", path["texts.txt"], "--weights-mean", path["m.npz"]],
        [*SHORT, "--with-mask", "full", "--compare", path["c.csv"]],
        ["--train", "reverse", "--steps", "1", "--out", str(tmp_path / "learned")],
    ]
    script = WITHOUT_QT.replace("COMMANDS", repr(commands))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    said = [line for line in done.stderr.splitlines() if line.startswith("ended with")]
    expected = [" ".join(["ended with", "0", *command]) for command in commands]
    assert said == expected, done.stderr
    assert "Qt does not load: PySide6" in done.stdout


def removable() -> list[str]:
    """Where this computer has the libraries that Qt needs: links and files of their names."""
    said = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    found = re.findall(r"^\s*(\S+) .* => (\S+)$", said, re.MULTILINE)
    return sorted({path for name, path in found if name in PACKAGES and name != "libsystemd.so.0"})


def may_make_a_root() -> bool:
    return sys.platform == "linux" and os.geteuid() == 0 and all(map(shutil.which, ("unshare", "chroot", "dpkg")))


ENTER = """
set -eu
cd "$1"
mkdir upper work root
mount -t tmpfs tmpfs upper
mkdir upper/new upper/work
mount -t overlay overlay -o "lowerdir=/,upperdir=$PWD/upper/new,workdir=$PWD/upper/work" root
for place in /proc /dev $PLACES; do
    mkdir -p "root$place"
    mount --rbind "$place" "root$place"
done
cd root
mkdir -p stash
for library in $LIBRARIES; do
    cp -L "./$library" stash/
    rm "./$library"
done
cp "$1/inside" inside
exec chroot . sh /inside
"""

# The package manager of this root: it writes down what it is asked, and brings it.
FAKE_APT = """#!/bin/sh
echo "$*" >> /asked
[ "$1" = update ] || { cp -n /stash/* /usr/lib/ && ldconfig; }
"""

INSIDE = """
cd {root}
export PATH={bin}:/fake:$PATH HOME={home} ATTENTION_EXPLORER_HOME={home} QT_QPA_PLATFORM=offscreen
run() {{
    name=$1
    shift
    "$@" > {out}/$name.out 2> {out}/$name.err && code=0 || code=$?
    echo $code > {out}/$name.code
}}
mkdir /fake
cp {fake} /fake/apt-get
chmod +x /fake/apt-get
run decode {python} -m attention_explorer --checkpoint story-gpt --text "Tom went" --decode 3
run window {python} -m attention_explorer
run tests {python} -m pytest -p no:cacheprovider tests/explorer/test_version.py
run notebook {python} -c "import attention_explorer as ax; ax.open('story-gpt')"
run script sh packaging/linux/libraries.sh
run again sh packaging/linux/libraries.sh
run qt {python} -c "from PySide6.QtWidgets import QApplication; QApplication([])"
cp /asked {out}/asked
"""


@pytest.mark.skipif(not may_make_a_root(), reason="root makes a root of its own, on Linux with dpkg")
def test_a_root_without_qts_libraries(tmp_path):
    libraries = removable()
    assert len(libraries) > 20
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "fake").write_text(FAKE_APT)
    values = {"root": ROOT, "bin": Path(sys.executable).parent, "home": tmp_path / "home", "out": out}
    values |= {"fake": tmp_path / "fake", "python": sys.executable}
    quoted = {name: shlex.quote(str(value)) for name, value in values.items()}
    (tmp_path / "inside").write_text(INSIDE.format(**quoted))
    places = {str(ROOT), sys.prefix, sys.base_prefix, str(tmp_path)}
    entered = subprocess.run(
        ["unshare", "-m", "sh", "-c", ENTER, "sh", str(tmp_path)],
        env={**os.environ, "PLACES": " ".join(sorted(places)), "LIBRARIES": " ".join(libraries)},
        capture_output=True,
        text=True,
    )
    if not (out / "decode.code").exists():
        pytest.skip(f"no overlay can be mounted here: {entered.stderr[-200:]}")

    def of(name: str) -> tuple[int, str, str]:
        return (
            int((out / f"{name}.code").read_text()),
            (out / f"{name}.out").read_text(),
            (out / f"{name}.err").read_text(),
        )

    code, said, wrong = of("decode")
    assert (code, len(said.split())) == (0, 3), wrong
    packages = "libdbus-1-3 libegl1 libfontconfig1"
    for name in ("window", "tests", "notebook"):
        code, _, wrong = of(name)
        assert code != 0
        assert f"are missing on this computer. Install them with: apt-get install {packages}" in wrong, name
        assert "libxkbcommon-x11-0" in wrong
        assert ("Traceback" in wrong) == (name == "notebook")
    assert of("script")[0] == 0, of("script")[2]
    assert of("again") == (0, "", "")
    assert of("qt")[0] == 0, of("qt")[2]
    asked = (out / "asked").read_text().splitlines()
    assert asked[0] == "update"
    files = [f"*/{Path(path).name}" for path in libraries]  # /lib is /usr/lib, and dpkg knows one of the two
    owners = subprocess.run(["dpkg", "-S", *files], capture_output=True, text=True).stdout
    owned = {line.partition(":")[0] for line in owners.splitlines()}
    assert set(asked[1].split()[3:]) <= owned
    assert len(asked[1].split()) > 25
