"""What a Linux desktop is given: valid by its own tools, and a .deb that leaves nothing behind."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from explorer.version import __version__

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
    out, root, admin = tmp_path / "out", tmp_path / "root", tmp_path / "admin"
    for folder in (out, root, admin / "updates", admin / "info"):
        folder.mkdir(parents=True)
    (admin / "status").touch()
    path = layout["deb"](*frozen, out, tmp_path / "work", __version__, "none")
    dpkg = ["dpkg", f"--instdir={root}", f"--admindir={admin}", f"--log={tmp_path / 'log'}", "--force-not-root"]
    subprocess.run([*dpkg, "--force-depends", "-i", str(path)], check=True, capture_output=True)

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

    subprocess.run([*dpkg, "--purge", "attention-explorer"], check=True, capture_output=True)
    assert list(root.rglob("*")) == []


@needs("dpkg-deb")
def test_same_files_give_same_deb(
    layout: dict[str, Callable[..., Any]], frozen: tuple[Path, Path], tmp_path: Path
) -> None:
    both = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        both.append(layout["deb"](*frozen, tmp_path / name, tmp_path / "work", __version__, "none").read_bytes())
    assert both[0] == both[1]


def test_app_dir_starts(layout: dict[str, Callable[..., Any]], frozen: tuple[Path, Path], tmp_path: Path) -> None:
    folder = layout["app_dir"](*frozen, tmp_path, __version__)
    assert subprocess.run([folder / "AppRun"], check=True, capture_output=True).stdout == b"started\n"
    for name in ("attention-explorer.desktop", "attention-explorer.png", ".DirIcon"):
        assert (folder / name).resolve(strict=True).is_file()
