"""Runs a chat template within limits of time and length, in the process that renders templates: no torch, no Qt.

A trace function is called for every line of a template, and for every piece of text that it yields.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from attention_models.files.helper_work import Note, serve_requests

MOST_SECONDS = 2.0
MOST_WRITTEN = 4_000_000
"""Characters: twenty times the longest text that the input takes."""

MOST_SAID = 400
"""Characters of what a template says when it refuses."""

ARGUMENT = "--render-templates"
"""Starts the program as the process that renders templates, where it was frozen into one file with its interpreter."""

_JINJA_FILE = "<template>"  # what jinja2 calls a template that was no file


class TemplateError(Exception):
    """A template gave no text. The message is for a person."""


class Refused(TemplateError):
    """The template refused the conversation. The message is in its own words."""


class Failed(TemplateError):
    """There is an error in the template."""


class Stopped(TemplateError):
    """The template took too long, wrote too much or took too much memory."""


class OutOfMemory(Stopped):
    pass


@contextmanager
def within_limits(seconds: float, written: int) -> Iterator[None]:
    """Stop a template of this thread that runs longer than `seconds` or writes more than `written` characters.

    One operation that takes long or asks for a vast string is not stopped: that takes a process of its own.

    Raises:
        Refused, Failed, Stopped: instead of what the template raised.
    """
    from jinja2 import TemplateError as JinjaError

    try:
        with _watched(seconds, written):
            yield
    except Stopped:
        raise
    except MemoryError:
        raise OutOfMemory("it took more memory than there is") from None
    except Exception as cause:  # whatever a program of somebody else runs into
        if type(cause) is JinjaError:  # what `raise_exception` of a template raises
            raise Refused(str(cause)) from cause
        raise Failed(f"{type(cause).__name__}: {cause}") from cause


def serve() -> None:
    """Be the process that renders templates."""
    from transformers.utils.chat_template_utils import render_jinja_template

    def render(request: str, _note: Note) -> str:
        asked = json.loads(request)
        try:
            with within_limits(asked["seconds"], asked["written"]):
                rendered: Any = render_jinja_template(
                    [asked["messages"]],
                    chat_template=asked["template"],
                    add_generation_prompt=asked["prompts"],
                    **asked["special"],
                )
            return json.dumps(("text", rendered[0][0]))  # of (texts, places of what an assistant generates)
        except OutOfMemory:
            raise MemoryError from None  # which is told as such
        except TemplateError as error:
            return json.dumps((type(error).__name__.lower(), str(error)[:MOST_SAID]))

    serve_requests(render)


@contextmanager
def _watched(seconds: float, most: int) -> Iterator[None]:
    until, written = time.monotonic() + seconds, 0

    def watch(frame: FrameType, event: str, value: Any) -> Any:
        nonlocal written
        if time.monotonic() > until:
            raise Stopped(f"it did not end within {seconds:.0f} seconds")
        if frame.f_code.co_filename != _JINJA_FILE:
            return None  # called by the template: only that it was called matters
        if event == "return" and isinstance(value, str):  # a piece that it yields
            written += len(value)
            if written > most:
                raise Stopped(f"it wrote more than {most:,} characters")
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        yield
    finally:
        sys.settrace(before)
