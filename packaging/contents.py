"""What goes into the frozen program, and what stays out. Used by the spec and by build.py."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from attention_explorer import licences

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
IDENTIFIER = "org.attentionexplorer.AttentionExplorer"
EXTRAS = ("gguf", "adapters", "spread")
"""Of pyproject.toml: nothing can be installed into a frozen program, so what they bring comes along."""

EXCLUDED_MODULES = (
    # imports of others that are never reached: windows of Python's own, test programs, databases, terminals
    *("tkinter", "pydoc_data", "lib2to3", "idlelib", "turtledemo", "ensurepip", "sqlite3", "readline", "curses"),
    *("torch.utils.tensorboard", "PIL._imagingtk", "PIL.ImageTk"),
    *("PIL._avif", "PIL.AvifImagePlugin"),  # pictures are opened in the formats of attention_models/files/pictures.py
    *("PIL._imagingft", "PIL._imagingcms"),  # nor is text written into them, or a colour profile applied
    # Qt that is never drawn with
    *(f"PySide6.{name}" for name in ("QtQml", "QtQuick", "QtNetwork", "QtSql")),
    *(f"PySide6.{name}" for name in ("QtTest", "QtPrintSupport", "QtDesigner", "QtHelp", "QtUiTools", "QtXml")),
    "PySide6.QtConcurrent",
)
"""Of what is required, and of Python's own."""

_QT_PLUGINS = {
    "platforms": ("qxcb", "qwayland", "qoffscreen", "qminimal", "qwindows", "qcocoa"),
    "platformthemes": ("qxdgdesktopportal",),
    "platforminputcontexts": ("composeplatform", "ibusplatform"),
    "imageformats": ("qsvg", "qjpeg", "qgif", "qico", "qicns", "qwebp"),
    "iconengines": ("qsvgicon",),
    "styles": ("",),
    "xcbglintegrations": ("qxcb",),
    "wayland-decoration-client": ("",),
    "wayland-graphics-integration-client": ("qt-plugin-wayland-egl",),
    "wayland-shell-integration": ("qt-shell", "xdg-shell", "fullscreen-shell"),
}
"""Folder -> beginnings of the names of the plugins that are kept (after "lib")."""

_UNUSED = re.compile(
    r"PySide6/(Qt/)?(translations|qml|metatypes|libexec|typesystems|include|glue|doc|support|scripts)/"
    r"|PySide6/.*\.pyi$|PySide6/Assistant|torch/(test|include|share)/|torch/bin/(?!torch_shm_manager)|torch/lib/[^/]*(test|jitbackend)[^/]*$"
    r"|/tests?/(?!.*\.(so|pyd)$)|\.(h|hpp|cuh|cmake|pyi|lib|a)$|/modular_\w+\.py$"
    r"|libQt6(Qml|Quick|VirtualKeyboard|Network|Pdf|Sql|EglF[Ss])[\w.]*$"
    # the build computer's, which torch would ask for by name
    r"|^libcudart\.so$"
    # lists of a distribution's files, which are other files here
    r"|\.dist-info/(RECORD|sboms/.*)$"
    r"|(^|/)lib(systemd|gcrypt|gpg-error|krb5|gssapi_krb5|k5crypto|mount|blkid|selinux|pixman-1|readline|tinfo|sqlite3)\.so"
)


def is_used(name: str) -> bool:
    """Whether a file of the bundle, by its place in it, is kept."""
    place = name.replace("\\", "/")
    plugin = re.search(r"/plugins/([\w-]+)/(?:lib)?([\w-]+)\.", place)
    if plugin is not None and "PySide6" in place:
        return plugin[2].startswith(_QT_PLUGINS.get(plugin[1], ())) if plugin[1] in _QT_PLUGINS else False
    return not _UNUSED.search(place)


def version() -> str:
    """The one in attention_explorer/version.py."""
    source = (ROOT / "explorer" / "attention_explorer" / "version.py").read_text(encoding="utf-8")
    found = re.search(r'__version__ = "([^"]+)"', source)
    assert found is not None
    return found[1]


def made_folder() -> str:
    """Where build.py has put what it made for the spec: icons, the version resource, licences."""
    return os.environ.get("ATTENTION_EXPLORER_MADE", str(ROOT / "build" / "made"))


def required() -> list[str]:
    """The lines of pyproject.toml: what is required, and what the extras add to it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    return [*project["dependencies"], *(line for name in EXTRAS for line in extras[name])]


def requirements() -> tuple[str, ...]:
    """Every distribution that the program stands on, by its normalized name: those in pyproject.toml and theirs.

    Raises:
        ValueError: one of pyproject.toml is not installed, and what is frozen would lack it.
    """
    lines = required()
    found = tuple(licences.installed(lines))
    lacking = {canonicalize_name(Requirement(line).name) for line in lines} - set(found)
    if lacking:
        raise ValueError(f"not installed: {', '.join(sorted(lacking))}. Run: pip install '.[{','.join(EXTRAS)}]'")
    return found


NOT_FROZEN = frozenset(
    canonicalize_name(name)
    for name in (
        "setuptools",
        "networkx",
        "lxml",
        "rich",
        "typer",
        "pygments",
        "shellingham",
        "hf-xet",
        "markdown-it-py",
        "mdurl",
        # what typer brings
        "annotated-doc",
        "annotated-types",
        "pydantic",
        "pydantic-core",
        "typing-inspection",
    )
)
"""Requirements of others that stay out of the bundle (`excluded_modules`)."""


def frozen() -> tuple[str, ...]:
    """The distributions whose code is in the bundle."""
    return tuple(name for name in requirements() if name not in NOT_FROZEN)


def excluded_modules() -> list[str]:
    """EXCLUDED_MODULES, and whatever else is installed beside what is required: libraries import it where it is there,
    and the bundle must not depend on that, nor hold what its list of licences does not name."""
    kept = {*frozen(), "attention-explorer"}
    others = (
        module
        for module, owners in packages_distributions().items()
        if module.isidentifier() and kept.isdisjoint(map(canonicalize_name, owners))
    )
    return sorted({*EXCLUDED_MODULES, *others})


def documents() -> list[Path]:
    """The pages that Help opens, and their pictures."""
    return sorted(path for kind in ("*.md", "*.png") for path in (ROOT / "docs").rglob(kind))


def data_files() -> list[tuple[str, str]]:
    """(file or folder, folder in the bundle)."""
    from PyInstaller.utils.hooks import collect_data_files, copy_metadata

    files = [(str(ROOT / "resources"), "attention_explorer/resources"), (str(ROOT / "LICENSE"), ".")]
    files += [(str(page), str(Path("attention_explorer", page.parent.relative_to(ROOT)))) for page in documents()]
    models = ROOT / "models" / "attention_models"
    files += [(str(models / name), f"attention_models/{name}") for name in ("weights", "samples")]
    files += collect_data_files("attention_explorer") + collect_data_files("attention_models")
    for name in frozen():
        files += copy_metadata(name)
    texts = Path(made_folder()) / licences.NAME
    if texts.is_file():
        files.append((str(texts), "attention_explorer/resources"))
    return list(dict.fromkeys(files))


def hidden_imports() -> list[str]:
    """Modules that are imported by name: panels, answering functions, the processes of our own, and the extras."""
    from PyInstaller.utils.hooks import collect_submodules

    found = collect_submodules("attention_explorer") + collect_submodules("attention_models")
    return [*found, "gguf", "accelerate", "sacrebleu", *collect_submodules("peft")]


def icon(made: Path) -> str | None:
    name = {"win32": "attention-explorer.ico", "darwin": "attention-explorer.icns"}.get(sys.platform)
    return str(made / name) if name is not None and (made / name).is_file() else None


def version_resource(made: Path) -> str | None:
    path = made / "version-resource.txt"
    return str(path) if sys.platform == "win32" and path.is_file() else None


def signer() -> str | None:
    """The identity that a Mac's binaries are signed with; without one they are signed for this computer alone."""
    return os.environ.get("ATTENTION_EXPLORER_SIGNER") if sys.platform == "darwin" else None


def info_plist() -> dict[str, object]:
    """What a Mac is told of the program, beside what PyInstaller says."""
    return {
        "CFBundleDisplayName": "Attention Explorer",
        "CFBundleShortVersionString": version(),
        "LSMinimumSystemVersion": "12.0",
        "LSApplicationCategoryType": "public.app-category.education",
        "NSHighResolutionCapable": True,
        "NSHumanReadableCopyright": "MIT licence",
        "CFBundleDocumentTypes": [
            {
                "CFBundleTypeName": "Attention Explorer session",
                "CFBundleTypeExtensions": ["attn"],
                "CFBundleTypeRole": "Editor",
                "LSHandlerRank": "Owner",
                "LSItemContentTypes": [f"{IDENTIFIER}.session"],
            },
            {
                "CFBundleTypeName": "Attention Explorer lesson",
                "CFBundleTypeExtensions": ["lesson"],
                "CFBundleTypeRole": "Editor",
                "LSHandlerRank": "Owner",
                "LSItemContentTypes": [f"{IDENTIFIER}.lesson"],
            },
        ],
        "UTExportedTypeDeclarations": [
            {
                "UTTypeIdentifier": f"{IDENTIFIER}.session",
                "UTTypeDescription": "Attention Explorer session",
                "UTTypeConformsTo": ["public.data"],
                "UTTypeTagSpecification": {"public.filename-extension": ["attn"]},
            },
            {
                "UTTypeIdentifier": f"{IDENTIFIER}.lesson",
                "UTTypeDescription": "Attention Explorer lesson",
                "UTTypeConformsTo": ["public.data"],  # TOML, or a zip with the states of its steps
                "UTTypeTagSpecification": {"public.filename-extension": ["lesson"]},
            },
        ],
    }
