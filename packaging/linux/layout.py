"""What a Linux desktop is given beside the program itself: a tree below `usr`, which a .deb and an AppDir both hold."""

from __future__ import annotations

import gzip
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NAME = "attention-explorer"
IDENTIFIER = "org.attentionexplorer.AttentionExplorer"

# What the libraries of the bundle ask for and it does not hold.
DEPENDS = "libc6 (>= @GLIBC@), libegl1, libgl1, libxcb1, libsystemd0"
RECOMMENDS = "libwayland-client0, libwayland-cursor0, libwayland-egl1"


def tree(folder: Path, icons: Path, target: Path, version: str) -> None:
    """Lay out below `target` what is installed: the built `folder`, icons, entry, metainfo, MIME types, man page."""
    usr = target / "usr"
    shutil.copytree(folder, usr / "lib" / NAME, symlinks=True)
    (usr / "bin").mkdir(parents=True)
    (usr / "bin" / NAME).symlink_to(f"../lib/{NAME}/{NAME}")
    _put(usr / "share" / "applications" / f"{NAME}.desktop", (HERE / f"{NAME}.desktop").read_text(encoding="utf-8"))
    _put(usr / "share" / "metainfo" / f"{IDENTIFIER}.metainfo.xml", metainfo(version))
    _put(usr / "share" / "mime" / "packages" / f"{NAME}.xml", (HERE / f"{NAME}.mime.xml").read_text(encoding="utf-8"))
    themed = usr / "share" / "icons" / "hicolor"
    for picture in icons.glob(f"{NAME}-*.png"):
        size = picture.stem.rpartition("-")[2]
        (themed / f"{size}x{size}" / "apps").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(picture, themed / f"{size}x{size}" / "apps" / f"{NAME}.png")
    (themed / "scalable" / "apps").mkdir(parents=True)
    shutil.copyfile(ROOT / "resources" / "icons" / f"{NAME}.svg", themed / "scalable" / "apps" / f"{NAME}.svg")
    page = usr / "share" / "man" / "man1" / f"{NAME}.1.gz"
    page.parent.mkdir(parents=True)
    page.write_bytes(gzip.compress(man_page(version).encode(), mtime=0))
    about = usr / "share" / "doc" / NAME
    _put(about / "copyright", (ROOT / "LICENSE").read_text(encoding="utf-8"))


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def metainfo(version: str) -> str:
    """AppStream's description, with the release as CHANGELOG.md dates it."""
    text = (HERE / f"{IDENTIFIER}.metainfo.xml").read_text(encoding="utf-8")
    return text.replace("@VERSION@", version).replace("@DATE@", release_date(version))


def release_date(version: str) -> str:
    """YYYY-MM-DD of a version in CHANGELOG.md. Raises ValueError where it has no heading there."""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(version)} - (\d{{4}}-\d\d-\d\d)$", changes, re.MULTILINE)
    if found is None:
        raise ValueError(f'CHANGELOG.md has no heading "## {version} - YYYY-MM-DD"')
    return found[1]


def man_page(version: str) -> str:
    """The manual in roff; its options are what the program itself prints for --help."""
    command = [sys.executable, "-m", "attention_explorer", "--help"]
    packages = os.pathsep.join(str(ROOT / name) for name in ("explorer", "models"))
    environment = {**os.environ, "COLUMNS": "78", "PYTHONPATH": packages, "PYTHONUTF8": "1"}
    done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8", env=environment, cwd=ROOT)
    options = done.stdout.partition("positional arguments:")[2].strip("\n")
    shown = "\n".join("\\&" + line.replace("\\", "\\e").replace("-", "\\-") for line in options.splitlines())
    name = NAME.replace("-", "\\-")
    return f""".TH ATTENTION\\-EXPLORER 1 "{release_date(version)}" "Attention Explorer {version}" "User Commands"
.SH NAME
{name} \\- run a transformer and see what each attention head computes
.SH SYNOPSIS
.B {name}
[\\fIoption\\fR ...] [\\fIFILE\\fR]
.SH DESCRIPTION
Opens a window on a transformer and a text, and shows which token attends to which, in every layer and head.
With one of the options that write or print something it does that and ends, without a window.
.SH OPTIONS
.nf
{shown}
.fi
.SH FILES
.TP
.I /etc/xdg/attention\\-explorer/presets.toml
What an administrator presets for all users.
.PP
Where settings and sessions of a person lie, \\fB\\-\\-diagnose\\fR says.
"""


def deb(folder: Path, icons: Path, out: Path, work: Path, version: str) -> Path:
    """Build the .deb of a built folder, owned by root, with dpkg-deb, not compressed (`archives.compress_deb`).

    The same files give the same bytes.
    """
    target = work / "deb"
    shutil.rmtree(target, ignore_errors=True)
    tree(folder, icons, target, version)
    for path in (target, *target.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file() and not path.is_symlink())
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    fields = {
        "Package": NAME,
        "Version": version,
        "Architecture": architecture,
        "Maintainer": "Attention Explorer contributors <contributors@attention-explorer.invalid>",
        "Installed-Size": str(size // 1024),
        "Depends": DEPENDS.replace("@GLIBC@", platform.libc_ver()[1]),
        "Recommends": RECOMMENDS,
        "Section": "education",
        "Priority": "optional",
        "Description": "run a transformer and see what each attention head computes\n"
        " A desktop application that shows the attention of real transformers, with\n"
        " models included. Brings along the Python, torch and Qt that it runs on.",
    }
    _put(target / "DEBIAN" / "control", "".join(f"{key}: {value}\n" for key, value in fields.items()))
    path = out / f"{NAME}_{version}_{architecture}.deb"
    command = ["dpkg-deb", "--root-owner-group", "-Znone", "--build", str(target), str(path)]
    subprocess.run(command, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": "0"}, stdout=subprocess.DEVNULL)
    shutil.rmtree(target)
    return path


def app_dir(folder: Path, icons: Path, out: Path, version: str) -> Path:
    """`Attention-Explorer.AppDir`, which appimagetool makes an AppImage of."""
    target = out / "Attention-Explorer.AppDir"
    shutil.rmtree(target, ignore_errors=True)
    tree(folder, icons, target, version)
    (target / f"{NAME}.desktop").symlink_to(f"usr/share/applications/{NAME}.desktop")
    (target / f"{NAME}.png").symlink_to(f"usr/share/icons/hicolor/256x256/apps/{NAME}.png")
    (target / ".DirIcon").symlink_to(f"{NAME}.png")
    (target / "AppRun").symlink_to(f"usr/bin/{NAME}")
    return target
