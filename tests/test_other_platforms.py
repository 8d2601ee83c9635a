"""What only runs on Windows, a Mac or a release's runner, as far as it can be read here."""

from __future__ import annotations

import plistlib
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGING = ROOT / "packaging"


def test_entitlements_that_the_spec_names_are_there():
    assert 'HERE / "macos" / "entitlements.plist"' in (PACKAGING / "attention-explorer.spec").read_text("utf-8")
    wanted = plistlib.loads((PACKAGING / "macos" / "entitlements.plist").read_bytes())
    assert wanted["com.apple.security.cs.disable-library-validation"] is True  # Qt stays replaceable


def test_setup_program_starts_programs_that_the_spec_builds():
    script = (PACKAGING / "windows" / "attention-explorer.iss").read_text("utf-8")
    built = set(
        re.findall(r'program\("([\w-]+)", (?:True|False)\)', (PACKAGING / "attention-explorer.spec").read_text())
    )
    started = set(re.findall(r"\{app\}\\([\w-]+)\.exe", script))
    assert started == {"attention-explorer-gui"}
    assert started < built
    licence = re.search(r"^LicenseFile=(.+)$", script, re.MULTILINE)
    assert licence is not None
    assert (PACKAGING / "windows" / licence[1].replace("\\", "/")).is_file()


def test_every_windows_program_has_a_twin_with_streams_for_its_processes():
    spec = (PACKAGING / "attention-explorer.spec").read_text("utf-8")
    built = dict(re.findall(r'program\("([\w-]+)", (True|False)\)', spec))
    assert "False" in built.values()
    assert {built[name.removesuffix("-gui")] for name in built} == {"True"}


def test_workflow_runs_files_that_are_there():
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with transformers")
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"))
    job = workflow["jobs"]["build"]
    assert {name.split("-")[0] for name in job["strategy"]["matrix"]["os"]} == {"ubuntu", "windows", "macos"}
    commands = "\n".join(step.get("run", "") for step in job["steps"]).replace("\\", "/")
    named = set(re.findall(r"\b(?:packaging|tests)/[\w./-]+\w", commands))
    assert {"packaging/build.py", "packaging/windows/attention-explorer.iss", "tests/test_bundle.py"} <= named
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_version_has_one_source_and_a_date():
    build = (ROOT / "pyproject.toml").read_text("utf-8")
    assert 'dynamic = ["version"]' in build
    source = (ROOT / "explorer" / "attention_explorer" / "version.py").read_text("utf-8")
    version = re.search(r'__version__ = "([^"]+)"', source)
    assert version is not None
    assert runpy.run_path(str(PACKAGING / "linux" / "layout.py"))["release_date"](version[1])
