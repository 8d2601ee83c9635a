"""Renders chat templates in a process of its own, which is ended where a template asks for too much.

A template is somebody else's program. transformers runs it in a sandbox that reaches neither files nor Python's inside;
what it does not bound is time and memory, and one operation of it ("x" * 3000000000) cannot be stopped from inside.
The process starts when the first template is rendered. The modules that it imports are few, and torch is not among
them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from attention_models.files.helper_process import Ended, HelperProcess, Limits
from attention_models.text.template_limits import ARGUMENT, MOST_SECONDS, MOST_WRITTEN, Failed, Refused, Stopped

MOST_MEMORY = 1 << 30
"""Bytes that a template may take beyond what the process starts with, which is a tenth of that."""

_GRACE = 1.0  # seconds beyond the limit that the process keeps itself, until it is ended from here


class TemplateProcess:
    """Renders templates elsewhere. Thread-safe."""

    def __init__(self) -> None:
        self._helper = HelperProcess("attention_models.text.template_limits", ARGUMENT)

    def render(
        self, template: str, messages: Sequence[Mapping[str, str]], prompts: bool, special: Mapping[str, Any]
    ) -> str:
        """What `template` makes of `messages`, with the prompt for the assistant if `prompts`.

        Args:
            special: names of special tokens and their texts, as the template may use them.

        Raises:
            Refused: by the template itself; its words.
            Failed: an error in it, or it could not be run at all.
            Stopped: it ran too long, wrote too much or took too much memory.
        """
        request = {
            "template": template,
            "messages": messages,
            "prompts": prompts,
            "special": special,
            "seconds": MOST_SECONDS,
            "written": MOST_WRITTEN,
        }
        seconds = MOST_SECONDS + _GRACE
        try:
            answer = self._helper.ask(json.dumps(request), Limits(seconds, 4 * seconds, MOST_MEMORY))
        except Ended as cause:
            raise _ended(cause) from cause
        except OSError as cause:
            raise Failed(f"the program that runs templates does not answer: {cause.strerror or cause}") from cause
        kind, said = json.loads(answer)
        if kind == "text":
            return str(said)
        raise {"refused": Refused, "stopped": Stopped}.get(kind, Failed)(said)

    def close(self) -> None:
        """End the process, if it runs. The next template starts another."""
        self._helper.close()


def _ended(cause: Ended) -> Stopped | Failed:
    if cause.limit == "memory":
        return Stopped("it took more than 1 GB of memory")
    if cause.limit == "time":
        return Stopped(f"it did not end within {MOST_SECONDS:.0f} seconds")
    return Failed("the program that runs templates ended")


THE_PROCESS = TemplateProcess()
