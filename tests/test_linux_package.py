"""What a Linux desktop is given: valid by its own tools, and a .deb that leaves nothing behind."""

from __future__ import annotations

import os
import runpy
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy
import pytest

from attention_explorer.version import __version__
from tests.foreign_root import dpkg

ROOT = Path(__file__).resolve().parents[1]
LINUX = ROOT / "packaging" / "linux"


def needs(tool: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(tool) is None, reason=f"{tool} is not installed")


@pytest.fixture(scope="module")
def layout() -> dict[str, Callable[..., Any]]:
    return runpy.run_path(str(LINUX / "layout.py"))


@pytest.fixture
def frozen(tmp_path: Path) -> tuple[Path, Path]:
    """A folder as PyInstaller leaves it, with a script in the place of the program, and the icons' folder."""
    folder, icons = tmp_path / "attention-explorer", tmp_path / "made"
    (folder / "_internal").mkdir(parents=True)
    (folder / "_internal" / "library.so").write_bytes(b"\x7fELF")
    program = folder / "attention-explorer"
    program.write_text("#!/bin/sh\necho started\n")
    program.chmod(0o755)
    icons.mkdir()
    for size in (16, 48, 256):
        (icons / f"attention-explorer-{size}.png").write_bytes(b"\x89PNG")
    return folder, icons


@needs("desktop-file-validate")
def test_desktop_file_is_valid() -> None:
    done = subprocess.run(["desktop-file-validate", LINUX / "attention-explorer.desktop"], capture_output=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def test_files_that_may_be_zips_are_no_texts() -> None:
    """A `.lesson` that was made in the window is one, as a session is."""
    root = ElementTree.parse(LINUX / "attention-explorer.mime.xml").getroot()
    above = {kind.get("type"): [one.get("type") for one in kind if one.tag.endswith("sub-class-of")] for kind in root}
    assert above == {
        "application/x-attention-explorer-session": ["application/zip"],
        "application/x-attention-explorer-lesson": [],
    }


@needs("appstreamcli")
def test_metainfo_is_valid(layout: dict[str, Callable[..., Any]], tmp_path: Path) -> None:
    path = tmp_path / "org.attentionexplorer.AttentionExplorer.metainfo.xml"
    path.write_text(layout["metainfo"](__version__), encoding="utf-8")
    done = subprocess.run(["appstreamcli", "validate", "--no-net", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert __version__ in path.read_text(encoding="utf-8")


@needs("dpkg")
def test_libraries_of_the_system_come_with_their_terms(tmp_path: Path) -> None:
    system = runpy.run_path(str(LINUX / "system_libraries.py"))
    inner = tmp_path / "_internal"
    inner.mkdir()
    for name in ("libz.so.1", "libnobody.so.9", "libpython3.11.so.1.0"):
        (inner / name).touch()
    (inner / "libtiff-20b7e810.so.6").symlink_to("libz.so.1")  # into a package
    assert system["names_in"](tmp_path) == ["libnobody.so.9", "libz.so.1"]
    (zlib,) = system["system_packages"](system["names_in"](tmp_path))
    assert (zlib.name, zlib.libraries) == ("zlib1g", ("libz.so.1",))
    chapter = system["licences"]([zlib])
    assert f"- zlib1g {zlib.version}: libz.so.1" in chapter
    assert "Jean-loup Gailly" in chapter
    assert system["licences"]([]) == ""


def test_release_without_heading_is_refused(layout: dict[str, Callable[..., Any]]) -> None:
    with pytest.raises(ValueError, match=r"CHANGELOG\.md has no heading"):
        layout["release_date"]("99.0.0")


@needs("man")
def test_manual_has_every_option(layout: dict[str, Callable[..., Any]], tmp_path: Path) -> None:
    page = tmp_path / "attention-explorer.1"
    page.write_text(layout["man_page"](__version__), encoding="utf-8")
    command = ["man", "--warnings", "-E", "UTF-8", "-l", "-P", "cat", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "MANWIDTH": "100"})
    assert (done.returncode, done.stderr) == (0, "")
    for option in ("--checkpoint CHECKPOINT", "--self-test [FOLDER]", "--experiment NAME", "a session (.attn)"):
        assert option in done.stdout


@needs("dpkg-deb")
def test_deb_leaves_nothing_behind(
    layout: dict[str, Callable[..., Any]], frozen: tuple[Path, Path], tmp_path: Path
) -> None:
    out, root = tmp_path / "out", tmp_path / "system"
    out.mkdir()
    path = layout["deb"](*frozen, out, tmp_path / "work", __version__)
    dpkg(tmp_path, "--install", str(path))

    started = subprocess.run([root / "usr/bin/attention-explorer"], check=True, capture_output=True, text=True)
    assert started.stdout == "started\n"
    installed = {file.relative_to(root / "usr").as_posix() for file in root.rglob("*") if not file.is_dir()}
    assert {
        "share/applications/attention-explorer.desktop",
        "share/icons/hicolor/48x48/apps/attention-explorer.png",
        "share/icons/hicolor/scalable/apps/attention-explorer.svg",
        "share/man/man1/attention-explorer.1.gz",
        "share/metainfo/org.attentionexplorer.AttentionExplorer.metainfo.xml",
        "share/mime/packages/attention-explorer.xml",
    } < installed

    dpkg(tmp_path, "--purge", "attention-explorer")
    assert list(root.rglob("*")) == []


@needs("dpkg-deb")
def test_same_files_give_same_deb(
    layout: dict[str, Callable[..., Any]], frozen: tuple[Path, Path], tmp_path: Path
) -> None:
    both = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        path = layout["deb"](*frozen, tmp_path / name, tmp_path / "work", __version__)
        runpy.run_path(str(ROOT / "packaging" / "archives.py"))["compress_deb"](path)
        both.append(path.read_bytes())
    assert both[0] == both[1]


def test_app_dir_starts(layout: dict[str, Callable[..., Any]], frozen: tuple[Path, Path], tmp_path: Path) -> None:
    folder = layout["app_dir"](*frozen, tmp_path, __version__)
    assert subprocess.run([folder / "AppRun"], check=True, capture_output=True).stdout == b"started\n"
    for name in ("attention-explorer.desktop", "attention-explorer.png", ".DirIcon"):
        assert (folder / name).resolve(strict=True).is_file()


@needs("dpkg-deb")
def test_a_compressed_deb_is_read_by_dpkg(
    layout: dict[str, Callable[..., Any]], frozen: tuple[Path, Path], tmp_path: Path
) -> None:
    library = frozen[0] / "_internal" / "library.so"
    library.write_bytes(library.read_bytes() + b"\xe8\x10\x20\x00\x00" * 100_000)  # calls, which the filter changes
    path = layout["deb"](*frozen, tmp_path, tmp_path / "work", __version__)
    plain = path.stat().st_size

    def said_and_held(name: str) -> tuple[str, dict[str, bytes]]:
        control = subprocess.run(["dpkg-deb", "--field", path], check=True, capture_output=True, text=True).stdout
        subprocess.run(["dpkg-deb", "--extract", path, tmp_path / name], check=True)
        files = (file for file in (tmp_path / name).rglob("*") if file.is_file())
        return control, {file.relative_to(tmp_path / name).as_posix(): file.read_bytes() for file in files}

    before = said_and_held("before")
    runpy.run_path(str(ROOT / "packaging" / "archives.py"))["compress_deb"](path)
    assert path.stat().st_size < plain / 4
    assert said_and_held("after") == before
    assert "usr/lib/attention-explorer/_internal/library.so" in before[1]


@pytest.fixture(scope="module")
def binaries() -> dict[str, Callable[..., Any]]:
    return runpy.run_path(str(LINUX / "binaries.py"))


def library(name: str) -> Path:
    """One of the system's."""
    found = next(Path("/usr/lib").glob(f"*/{name}"), None)
    return found if found is not None else pytest.skip(f"{name} is not installed")


@needs("readelf")
def test_libraries_that_nothing_needs_go(binaries: dict[str, Callable[..., Any]], tmp_path: Path) -> None:
    inner = tmp_path / "_internal"
    (inner / "package").mkdir(parents=True)
    shutil.copyfile(library("libfontconfig.so.1"), inner / "package" / "extension.so")
    chain = {"libfreetype.so.6", "libpng16.so.16", "libz.so.1"}  # each is needed by the one before
    alone = {"libdbus-1.so.3", "libpcre2-8.so.0", "libglib-2.0.so.0"}  # the last is all that needs the second
    for name in chain | alone:
        shutil.copyfile(library(name), inner / name)
    shutil.copyfile(library("libz.so.1"), inner / "libpython3.11.so.1.0")  # which the program opens by its name
    (inner / "libnothing.so").symlink_to("package/extension.so")
    binaries["remove_unneeded"](tmp_path)
    left = {path.name for path in inner.iterdir()}
    assert left == {*chain, "package", "libpython3.11.so.1.0", "libnothing.so"}


@needs("readelf")
def test_segments_that_are_misplaced_are_seen(binaries: dict[str, Callable[..., Any]], tmp_path: Path) -> None:
    program = Path(sys.executable).resolve()
    assert "libc.so.6" in binaries["needed_by"]([program])
    assert binaries["needed_by"]([]) == set()
    assert binaries["can_be_loaded"](program)
    moved = bytearray(program.read_bytes())
    (table,) = struct.unpack_from("<Q", moved, 32)
    size, count = struct.unpack_from("<HH", moved, 54)
    loaded = next(at for at in range(table, table + size * count, size) if struct.unpack_from("<I", moved, at)[0] == 1)
    struct.pack_into("<Q", moved, loaded + 16, struct.unpack_from("<Q", moved, loaded + 16)[0] + 8)  # its address
    (tmp_path / "moved").write_bytes(moved)
    assert not binaries["can_be_loaded"](tmp_path / "moved")


@needs("readelf")
@needs("strip")
def test_what_is_stripped_still_loads(binaries: dict[str, Callable[..., Any]], tmp_path: Path) -> None:
    """Of numpy's libraries, which patchelf has changed, strip breaks some."""
    original = Path(numpy.__file__).parents[1] / "numpy.libs"
    if not original.is_dir():
        pytest.skip("numpy is not from a wheel")
    libraries = shutil.copytree(original, tmp_path / "libraries")
    binaries["strip"](libraries)
    assert {path.name for path in libraries.iterdir()} == {path.name for path in original.iterdir()}
    load = "import ctypes, sys; [ctypes.CDLL(name) for name in sys.argv[1:]]"
    environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
    subprocess.run([sys.executable, "-c", load, *libraries.iterdir()], check=True, env=environment)
