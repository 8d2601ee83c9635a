"""Builds the program for the platform that it runs on: `python packaging/build.py`, in an environment of its own.

    python -m pip install ".[package,gguf,adapters,spread]" && python packaging/build.py

`dist/` then holds the program as a folder (`attention-explorer/`), an archive of it, SHA256SUMS and an SBOM in
CycloneDX's format; on Linux also a .deb. With `--only folder` nothing is packed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "models"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "explorer"))
sys.path.insert(1, str(Path(__file__).resolve().parent / "linux"))

import archives
import binaries
import contents
import icons
import layout
import system_libraries

from attention_explorer import licences

HERE, ROOT = contents.HERE, contents.ROOT
NAME = "attention-explorer"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where the results go")
    parser.add_argument("--work", type=Path, default=ROOT / "build", help="what is made on the way")
    parser.add_argument(
        "--only", choices=("folder", "packages"), help="freeze and do not pack; or pack what was frozen before"
    )
    parser.add_argument(
        "--preset", choices=list("0123456789"), default=archives.BEST, help="of xz; 0 is soon done (%(default)s)"
    )
    parser.add_argument("--appdir", action="store_true", help="Linux: also the folder that appimagetool packs")
    args = parser.parse_args()
    out, work = args.out.resolve(), args.work.resolve()
    folder = out / NAME
    if args.only != "packages":
        freeze(out, work)
    print(size_table(folder))
    if args.only == "folder":
        return 0
    packages = pack(folder, out, args.preset)
    if sys.platform == "linux":
        packages.append(layout.deb(folder, work / "made", out, work, contents.version()))
        archives.compress_deb(packages[-1], args.preset)
        if args.appdir:
            print(layout.app_dir(folder, work / "made", out, contents.version()))
    packages.append(write_sbom(folder, out / f"{NAME}-{contents.version()}.cdx.json"))
    sums = "".join(f"{sha256(path)}  {path.name}\n" for path in packages)
    (out / "SHA256SUMS").write_text(sums, encoding="utf-8", newline="\n")
    for path in packages:
        print(f"{path.stat().st_size / 1e6:8.1f} MB  {path.name}")
    return 0


def freeze(out: Path, work: Path) -> None:
    """Make the folder that holds the program and all it needs."""
    made = work / "made"
    made.mkdir(parents=True, exist_ok=True)
    icons.make(made)
    (made / licences.NAME).write_text(licences.collected(contents.frozen()), encoding="utf-8", newline="\n")
    if sys.platform == "win32":
        (made / "version-resource.txt").write_text(version_resource(), encoding="utf-8")
    shutil.rmtree(out / NAME, ignore_errors=True)
    command = [sys.executable, "-m", "PyInstaller", str(HERE / "attention-explorer.spec"), "--noconfirm"]
    command += ["--distpath", str(out), "--workpath", str(work / "pyinstaller"), "--log-level", "WARN"]
    # The order of sets goes into what is compiled: one seed, one result.
    environment = {**os.environ, "ATTENTION_EXPLORER_MADE": str(made), "PYTHONHASHSEED": "0"}
    subprocess.run(command, check=True, env=environment, cwd=ROOT)
    if sys.platform == "linux":
        binaries.remove_unneeded(out / NAME)
        binaries.strip(out / NAME)
        add_licences_of_the_system(out / NAME)


def add_licences_of_the_system(folder: Path) -> None:
    """Write those of the system's libraries in the bundle below those of the packages."""
    packages = system_libraries.system_packages(system_libraries.names_in(folder))
    texts = folder / "_internal" / "attention_explorer" / "resources" / licences.NAME
    with texts.open("a", encoding="utf-8") as file:
        file.write(system_libraries.licences(packages))


def size_table(folder: Path) -> str:
    """Bytes on disk by component, the largest first."""
    sizes: Counter[str] = Counter()
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            sizes[component(path.relative_to(folder))] += path.stat().st_size
    lines = [f"{size / 1e6:8.1f} MB  {name}" for name, size in sizes.most_common() if size > 1e6]
    rest = sum(size for size in sizes.values() if size <= 1e6)
    return "\n".join([*lines, f"{rest / 1e6:8.1f} MB  smaller ones", f"{sizes.total() / 1e6:8.1f} MB  together"])


def component(path: Path) -> str:
    """What a file of the folder belongs to."""
    parts = path.parts[1:] if path.parts[0] == "_internal" else path.parts
    if len(path.parts) == 1:
        return "program, with the modules of all packages"
    if len(parts) == 1:
        return "Python" if parts[0].startswith(("libpython", "base_library")) else "libraries of the system"
    return parts[0].removesuffix(".libs").replace("python3.", "Python 3.")


def pack(folder: Path, out: Path, preset: str) -> list[Path]:
    """The folder as one file, to be unpacked anywhere."""
    name = f"{NAME}-{contents.version()}-{sys.platform}-{platform.machine().lower()}"
    if sys.platform == "win32":
        return [Path(shutil.make_archive(str(out / name), "zip", out, NAME))]
    if sys.platform == "darwin":
        return [archives.tar_xz(out / "Attention Explorer.app", out / f"{name}.tar.xz", preset)]
    return [archives.tar_xz(folder, out / f"{name}.tar.xz", preset)]


def version_resource() -> str:
    """What Windows shows as the properties of the program, in PyInstaller's form."""
    numbers = (*(int(part) for part in contents.version().split(".")[:3]), 0)
    template = (HERE / "windows" / "version-resource.txt").read_text(encoding="utf-8")
    return template.replace("@NUMBERS@", repr(numbers)).replace("@VERSION@", contents.version())


def write_sbom(folder: Path, path: Path) -> Path:
    """What is in the bundle, in CycloneDX's format: distributions with licences, Python, libraries of the system."""
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.model.license import DisjunctiveLicense
    from cyclonedx.output import make_outputter
    from cyclonedx.schema import OutputFormat, SchemaVersion
    from packageurl import PackageURL

    bom = Bom()
    program = Component(name=NAME, version=contents.version(), type=ComponentType.APPLICATION, bom_ref=NAME)
    program.licenses.add(DisjunctiveLicense(id="MIT"))
    bom.metadata.component = program
    parts = []
    for found in licences.distributions(contents.frozen()):
        url = PackageURL("pypi", None, found.name.lower(), found.version)
        part = Component(name=found.name, version=found.version, type=ComponentType.LIBRARY, purl=url, bom_ref=str(url))
        part.licenses.add(DisjunctiveLicense(name=found.licence))
        parts.append(part)
        bom.components.add(part)
    python = platform.python_version()
    parts.append(Component(name="python", version=python, type=ComponentType.PLATFORM, bom_ref=f"python@{python}"))
    bom.components.add(parts[-1])
    for package in system_libraries.system_packages(system_libraries.names_in(folder)):
        url = PackageURL("deb", platform.freedesktop_os_release()["ID"], package.name, package.version)
        kind = ComponentType.LIBRARY
        parts.append(Component(name=package.name, version=package.version, type=kind, purl=url, bom_ref=str(url)))
        bom.components.add(parts[-1])
    bom.register_dependency(program, parts)
    make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_to_file(str(path), allow_overwrite=True, indent=1)
    return path


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main())
