"""The command among others: signals, closed pipes, full disks, terminals of another alphabet, empty options."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from attention_explorer.app import main
from tests.harness.program import heed_signals

WRITES = ("--checkpoint", "en-es", "--text", "Good morning.", "--decode", "9")  # Buenos días.

posix = pytest.mark.skipif(os.name != "posix", reason="signals and device files are those of POSIX")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "attention_explorer", *arguments]


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"QT_QPA_PLATFORM": "offscreen"} | more


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command(*arguments),
        cwd=folder,
        env=environment(),
        stdout=pipe,
        stderr=pipe,
        text=True,
        encoding="utf-8",
        preexec_fn=heed_signals if os.name == "posix" else None,
    )


# --------------------------------------------------------------------------- signals


@pytest.mark.short("2-0.5-arguments1", "15-1.3-arguments3")
@posix
@pytest.mark.parametrize(
    ("after", "arguments"),
    [
        (0.2, ("--decode", "400")),
        (0.5, ("--png", "a.png")),
        (0.9, ("--decode", "400")),
        (1.3, ("--weights", "a.npz")),
        (2.0, ("--decode", "400")),
    ],
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_command_as_it_ends_any(tmp_path, after, arguments, number):
    process = started(tmp_path, "--text", "the " * 500, *arguments)
    time.sleep(after)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode in (-number, 128 + number)
    assert (out, err) == ("", "")
    assert list(tmp_path.glob("a.*")) == []


INTERRUPTED_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
from attention_models.files.safe_files import replacing
from attention_explorer import console

def work():
    with console.signals_raised(), replacing(Path("a.npz")) as part:
        part.write_bytes(b"half")
        os.kill(os.getpid(), signal.{name})
        os.kill(os.getpid(), signal.{name})  # as timeout sends two
        part.write_bytes(b"whole")
    return 0

sys.exit(console.run(work))
"""


@pytest.mark.short("SIGTERM")
@posix
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_half_a_file_is_taken_away(tmp_path, name):
    program = INTERRUPTED_WHILE_WRITING.format(name=name)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=heed_signals,
    )
    assert (done.returncode, done.stdout, done.stderr) == (-getattr(signal, name), "", "")
    assert [path.name for path in tmp_path.iterdir() if path.name != "home"] == []


@posix
def test_a_command_that_was_started_to_ignore_a_signal_does(tmp_path):
    """As nohup does with the signal of a terminal that closes."""
    program = "import os, signal; from attention_explorer import console\n"
    program += "print(console.run(lambda: os.kill(os.getpid(), 1) or 0))"
    done = subprocess.run(
        [sys.executable, "-c", f"import signal; signal.signal(1, signal.SIG_IGN)\n{program}"],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "0\n")


def test_signals_are_handled_as_before_afterwards(capsys):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert main(["--decode", "0"]) == 1
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


# --------------------------------------------------------------------------- who reads


@pytest.mark.full
@posix
@pytest.mark.parametrize("arguments", [WRITES, ("--help",), ("--version",)])
def test_a_full_disk_is_a_sentence(arguments):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command(*arguments), env=environment(), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr == "Standard output could not be written: no space left on device.\n"


@posix
@pytest.mark.parametrize(("arguments", "code"), [(("--decode", "0"), 1), (("--telepathy",), 2)])
def test_a_full_disk_does_not_take_errors_amiss(arguments, code):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command(*arguments), env=environment(), stdout=subprocess.PIPE, stderr=full, text=True, check=False
        )
    assert (done.returncode, done.stdout) == (code, "")


@posix
@pytest.mark.parametrize("arguments", [("--help",), ("--version",)])
def test_nobody_reads_and_nothing_is_said(arguments):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        command(*arguments), env=environment(), stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, "")


@pytest.mark.full
def test_a_terminal_of_another_alphabet_gets_escapes():
    done = subprocess.run(command(*WRITES), env=environment(PYTHONIOENCODING="ascii"), capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"Buenos d\\xedas." + os.linesep.encode(), b"")


@posix
def test_a_locale_of_another_alphabet_gets_escapes():
    program = "from attention_explorer import console; console.run(lambda: console.say('d\\xedas') or 0)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"d\\xedas\n", b"")


@posix
@pytest.mark.parametrize(
    ("arguments", "closed", "code"),
    [(("--version",), ">&-", 0), (("--decode", "0"), "2>&-", 1), (("--help",), "<&-", 0)],
)
def test_a_stream_that_is_closed_is_none(arguments, closed, code):
    line = " ".join(f"'{part}'" for part in command(*arguments))
    done = subprocess.run(
        ["sh", "-c", f"{line} {closed}"], env=environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (code, "")


# --------------------------------------------------------------------------- options


@pytest.mark.parametrize("option", ["checkpoint", "picture", "scale", "mask", "device", "png", "size", "weights"])
@pytest.mark.parametrize("rest", [(), ("--decode", "3")], ids=["window", "command"])
def test_an_option_given_nothing_is_refused(capsys, option, rest):
    assert main([f"--{option}", "", *rest]) == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"--{option} is given nothing (“”). Give it a value, or leave it out.\n")


@pytest.mark.parametrize(
    "option",
    [
        "dtype",
        "theme",
        "decode",
        "strategy",
        "beams",
        "length-penalty",
        "temperature",
        "top-k",
        "top-p",
        "min-p",
        "seed",
    ],
)
def test_an_option_given_nothing_is_no_choice_and_no_number(capsys, option):
    with pytest.raises(SystemExit) as ended:
        main([f"--{option}", ""])
    assert ended.value.code == 2
    assert f"argument --{option}: invalid" in capsys.readouterr().err
