from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import PySide6
import pytest

from attention_explorer import missing_libraries
from attention_explorer.missing_libraries import PACKAGES, missing_library

ROOT = Path(__file__).resolve().parents[2]


SCRIPT = ROOT / "packaging" / "linux" / "libraries.sh"


@pytest.fixture
def computer(monkeypatch) -> Callable[..., None]:
    """`computer(manager, missing)`: one with this package manager, used by root, that lacks these libraries."""

    def pretend(manager: str, missing: Iterable[str] = (), root: bool = True) -> None:
        monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if name == manager else None)
        monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000)
        monkeypatch.setattr(missing_libraries, "_loads", lambda name: name not in missing)

    return pretend


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "libEGL.so.1: cannot open shared object file: No such file or directory",
            "The library libEGL.so.1 is missing on this computer. Install it with: apt-get install libegl1",
        ),
        (
            "Cannot load library /x/libqxcb.so: (libxcb-cursor.so.0: cannot open shared object file: No such file)",
            "The library libxcb-cursor.so.0 is missing on this computer. Install it with: apt-get install "
            "libxcb-cursor0",
        ),
        (
            "libnew.so.7: cannot open shared object file: No such file or directory",
            "The library libnew.so.7 is missing on this computer. Install it from your distribution.",
        ),
        ("No module named 'torch'", ""),
        ("", ""),
    ],
)
def test_the_loaders_message_becomes_a_sentence(computer, said, words):
    computer("apt-get")
    assert missing_library(said) == words


LACKS = ("libGL.so.1", "libEGL.so.1", "libxkbcommon.so.0", "libwayland-cursor.so.0")


@pytest.mark.parametrize(
    ("manager", "root", "command"),
    [
        ("apt-get", True, "apt-get install libegl1 libgl1 libxkbcommon0"),
        ("apt-get", False, "sudo apt-get install libegl1 libgl1 libxkbcommon0"),
        ("dnf", False, "sudo dnf install 'libEGL.so.1()(64bit)' 'libGL.so.1()(64bit)' 'libxkbcommon.so.0()(64bit)'"),
        ("zypper", True, "zypper install 'libEGL.so.1()(64bit)' 'libGL.so.1()(64bit)' 'libxkbcommon.so.0()(64bit)'"),
        ("pacman", True, "pacman -S libglvnd libxkbcommon"),
    ],
)
def test_one_sentence_names_all_that_is_missing(computer, manager, root, command):
    """The loader names one at a time. Without Wayland's libraries Qt goes to X."""
    computer(manager, LACKS, root)
    assert missing_library("libGL.so.1: cannot open shared object file") == (
        "The libraries libEGL.so.1, libGL.so.1, libxkbcommon.so.0 are missing on this computer. "
        f"Install them with: {command}"
    )


def test_a_computer_whose_package_manager_nobody_knows(computer):
    computer("apk", LACKS)
    assert missing_library("libGL.so.1: cannot open shared object file").endswith(
        "are missing on this computer. Install them from your distribution."
    )


def table() -> dict[str, tuple[str, str]]:
    """The libraries that the script knows, and their packages."""
    rows = SCRIPT.read_text(encoding="utf-8").partition("libraries='\n")[2].partition("'")[0]
    return {library: (debian, arch) for library, debian, arch in map(str.split, rows.strip().splitlines())}


def test_the_script_and_the_sentences_know_the_same_libraries():
    assert table() == {name: packages for name, packages in PACKAGES.items() if name != "libsystemd.so.0"}


def linked(paths: Iterable[Path]) -> dict[str, Path]:
    """What the loader brings in for these files, by name: all of it, also what is asked for in turn."""
    said = subprocess.run(["ldd", *map(str, paths)], capture_output=True, text=True, check=True).stdout
    assert "not found" not in said
    return {name: Path(path) for name, path in re.findall(r"(\S+) => (\S+) \(0x", said)}


@pytest.mark.skipif(shutil.which("ldd") is None, reason="of Linux")
def test_the_script_installs_all_that_pyside_is_linked_with():
    qt = Path(PySide6.__file__).parent
    parts = [
        *(qt / f"{name}.abi3.so" for name in ("QtCore", "QtGui", "QtWidgets", "QtSvg")),
        *(qt / "Qt" / "plugins" / "platforms" / f"lib{name}.so" for name in ("qxcb", "qwayland", "qoffscreen")),
        *(qt / "Qt" / "plugins" / kind for kind in ("imageformats/libqsvg.so", "iconengines/libqsvgicon.so")),
    ]
    asked = {name: path for name, path in linked(parts).items() if qt.parent not in path.parents}
    known = {name: path for name, path in asked.items() if name in table()}
    # A plugin asks for libwayland-egl once a window is drawn with OpenGL.
    assert set(table()) - set(known) <= {"libwayland-egl.so.1"}
    of_python = set(linked([Path(sys.executable).resolve()])) | {"libz.so.1", "libzstd.so.1"}
    of_python |= {"libstdc++.so.6", "libgcc_s.so.1", "libdl.so.2", "libpthread.so.0"}
    assert set(asked) - of_python <= {*known, *linked(known.values())}


FAKE = """#!/bin/sh
echo "$(basename "$0") $*" >> "$CALLS"
"""


def run_script(
    folder: Path, manager: str, *arguments: str, uid: str = "0", **more: str
) -> subprocess.CompletedProcess[str]:
    """Run the script on a computer without any of the libraries, whose package manager writes down what it is asked."""
    tools = folder / "bin"
    tools.mkdir()
    for name in ("sh", "find", "head", "ls", "sed", "basename", "uname"):
        (tools / name).symlink_to(str(shutil.which(name)))
    (tools / "id").write_text(f"#!/bin/sh\necho {uid}\n")
    (tools / "ldconfig").write_text("#!/bin/sh\n")
    for name in filter(None, (manager, *more)):
        (tools / name).write_text(FAKE)
    for path in tools.iterdir():
        if not path.is_symlink():
            path.chmod(0o755)
    script = folder / "libraries.sh"  # which adds the folders of ldconfig to its path: this computer's own is not asked
    script.write_text(SCRIPT.read_text(encoding="utf-8").replace("PATH=$PATH:/sbin:/usr/sbin\n", ""), encoding="utf-8")
    return subprocess.run(
        [shutil.which("sh") or "sh", str(script), *arguments],
        env={"PATH": str(tools), "CALLS": str(folder / "calls"), "HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("manager", "begins", "has"),
    [
        (
            "apt-get",
            "apt-get install -y --no-install-recommends ",
            ("libegl1", "libxcb-cursor0", "libxtst6", "xvfb", "git"),
        ),
        ("dnf", "dnf install -y ", ("libEGL.so.1()(64bit)", "libxcb-cursor.so.0()(64bit)", "/usr/bin/xvfb-run")),
        ("zypper", "zypper install -y ", ("libEGL.so.1()(64bit)", "libxcb-cursor.so.0()(64bit)", "/usr/bin/git")),
        ("pacman", "pacman -S --needed --noconfirm ", ("libglvnd", "xcb-util-cursor", "xorg-server-xvfb")),
    ],
)
def test_the_script_asks_the_systems_package_manager(tmp_path, manager, begins, has):
    done = run_script(tmp_path, manager, "--tests")
    assert done.returncode == 0, done.stderr
    asked = (tmp_path / "calls").read_text().splitlines()[-1]
    assert asked.startswith(begins)
    words = asked.removeprefix(begins).split()
    assert set(has) < set(words)
    assert len(words) == len(set(words))


def test_who_may_not_install_is_told_one_complete_command(tmp_path):
    done = run_script(tmp_path, "apt-get", uid="1000")
    assert done.returncode == 1
    assert not (tmp_path / "calls").exists()
    command = done.stderr.splitlines()[1].strip()
    assert command.startswith("apt-get update && apt-get install -y --no-install-recommends libegl1 ")
    assert {packages[0] for packages in table().values()} <= set(command.split())


def test_sudo_is_asked_where_it_needs_no_password(tmp_path):
    done = run_script(tmp_path, "apt-get", uid="1000", sudo="")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "calls").read_text().splitlines()[1] == "sudo apt-get update"


def test_a_system_without_a_known_package_manager(tmp_path):
    done = run_script(tmp_path, "")
    assert done.returncode == 1
    assert "libEGL.so.1()(64bit)" not in done.stderr
    assert "Missing on this computer: libEGL.so.1 " in done.stderr


def test_the_readmes_commands_begin_with_the_script():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for heading, begins in (
        ("Run it", "sh packaging/linux/libraries.sh && "),
        ("Run the tests", "sh packaging/linux/libraries.sh --tests && "),
    ):
        block = text.partition(f"## {heading}\n")[2].partition("```bash\n")[2].partition("```")[0]
        assert block.startswith(begins)


def test_every_library_that_the_bundle_leaves_to_the_system_is_known():
    layout = runpy.run_path(str(ROOT / "packaging" / "linux" / "layout.py"))
    asked = set(re.findall(r"\blib[\w.-]+", f"{layout['DEPENDS']}, {layout['RECOMMENDS']}")) - {"libc6"}
    assert {"libxcb1", "libegl1"} < asked
    assert asked <= {debian for debian, _ in PACKAGES.values()}
