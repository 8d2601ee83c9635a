"""torch: its libraries and modules; source only of modules that are read by torch when it is imported.

Headers, tests, CMake files and the tools in torch/bin stay out. Libraries of an accelerator that a wheel keeps in
torch/lib come along; those in packages of their own (nvidia-*) are found by PyInstaller's analysis of torch/lib.
"""

from pathlib import Path

from PyInstaller.utils.hooks import PY_DYLIB_PATTERNS, collect_dynamic_libs, collect_submodules, get_package_paths

_, FOLDER = get_package_paths("torch")

# A test's library is loaded by nobody.
_TESTS = ("test", "jitbackend", "backend_with_compiler", "aoti_custom_ops")


# Of torch's own tests, what the rest of it imports when it is imported, or a step of an optimizer is taken.
_USED_OF_TESTS = ("common_dtype", "logging_tensor", "distributed", "distributed.fake_pg")


def _is_used(name: str) -> bool:
    of_tests = name.removeprefix("torch.testing._internal.")
    # kernels of quack are written for a compiler, cutlass, that is not in the bundle
    return (of_tests == name or of_tests in _USED_OF_TESTS) and not name.startswith(
        ("torch.utils.tensorboard", "torch._vendor.quack")
    )


def _is_read(path: Path) -> bool:
    """`install_config_module` looks for comments, and `torch.jit` keeps the text of what it decorates.

    Of torch's own tests some are imported by other modules of it, but none is read.
    """
    if path.is_relative_to(Path(FOLDER, "testing")):
        return False
    source = path.read_bytes()
    return any(
        word in source for word in (b"install_config_module(", b"_overload", b"jit.script", b"_script_if_tracing")
    )


# PyInstaller gives a package's mode to all within it that has none of its own: so every module is named.
module_collection_mode = {}
for path in Path(FOLDER).rglob("*.py"):
    name = ".".join(("torch", *path.relative_to(FOLDER).with_suffix("").parts)).removesuffix(".__init__")
    module_collection_mode[name] = "pyz+py" if _is_read(path) else "pyz"

warn_on_missing_hiddenimports = False
hiddenimports = collect_submodules("torch", filter=_is_used)
excludedimports = [name for name in module_collection_mode if not _is_used(name)]
binaries = [
    (source, target)
    for source, target in collect_dynamic_libs("torch", search_patterns=[*PY_DYLIB_PATTERNS, "*.so.*"])
    if not any(word in Path(source).name for word in _TESTS)
]
if (manager := Path(FOLDER, "bin", "torch_shm_manager")).is_file():  # import torch asks whether it is there
    binaries.append((str(manager), "torch/bin"))
# torch looks for its libraries beside itself; a link to one from the top folder leads it astray
bindepend_symlink_suppression = ["**/torch/lib/*.so*"]
