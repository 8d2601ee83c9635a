"""Has a checkpoint's files read in a process that is ended where they ask for too much, before this one reads them.

What libraries do with a hostile file cannot all be foreseen, and little of it can be called off: a million layers from
a list of two entries, a regular expression that never ends. A file that was read there within limits is read here too.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec
from huggingface_hub import constants

from attention_models.files.catalogue import HANDED_OVER, SHIPPED, shipped_unchanged
from attention_models.files.gguf import read_gguf
from attention_models.files.helper_process import Ended, HelperProcess, Limits
from attention_models.files.helper_work import TRY_CHECKPOINTS, Note, serve_requests
from attention_models.files.hub_cache import cache_location
from attention_models.files.names import is_hub, parse, title_of, whole_of
from attention_models.files.weight_files import TEXT_BYTES
from attention_models.opening.inspect_checkpoint import find
from attention_models.opening.trial import TrialRequest, Verdict, judge
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.request import ShouldStop, never

THE_PROCESS = HelperProcess("attention_models.opening.trial_process", TRY_CHECKPOINTS)


def start_for(reference: str) -> None:
    """Have it ready, without waiting, where the checkpoint that is to be opened will be tried.

    It imports torch for two or three seconds, in which this program does so too.
    """
    if reference not in SHIPPED and not reference.startswith(HANDED_OVER):
        THE_PROCESS.start()


LIMITS = Limits(processor_seconds=4.0, seconds=60.0, memory=400 << 20)
"""Of one without a large vocabulary; on a slow processor, or a busy one, there are more seconds (`helper_work.leeway`).

DeepSeek-V3's 45,337 tensors and 129,280 pieces take 1.7 of 5.4 s and 119 of 490 MB, Gemma's 262,144 pieces 1.3 of 6.9 s
and 224 of 566 MB.
"""

_REHEARSED = ("story-gpt", "vit-cifar10")

_A_MB = (0.25, 12 << 20)  # seconds and bytes for a megabyte of a tokenizer's file
_A_MB_OF_GGUF = (1.0, 60 << 20)  # of a header: transformers works out from it how pieces are put together


def verdict_on(request: TrialRequest, should_stop: ShouldStop = never) -> Verdict:
    """As `judge`, in the process. What ships with the program and is as it was is read here at once.

    Raises:
        CheckpointError: it took more than `LIMITS`.
        Cancelled: `should_stop` said so.
    """
    if request.listing is None and shipped_unchanged(request.reference):
        return judge(request)
    return verdict_elsewhere(request, should_stop)


def verdict_elsewhere(request: TrialRequest, should_stop: ShouldStop = never) -> Verdict:
    """As `judge`, in the process, whatever it is.

    Raises:
        CheckpointError, Cancelled: as from `verdict_on`.
    """
    try:
        asked = replace(request, cache=cache_location())
        answer = THE_PROCESS.ask(_encoded(asked), _limits(request), should_stop)
        return msgspec.convert(json.loads(answer), Verdict)
    except Ended as cause:
        raise CheckpointError(
            f"{_title(request.reference)}: {cause.at or 'what its files say'} {cause.why}, so it was not opened. Fetch "
            "it again, or open another checkpoint."
        ) from cause
    except OSError as cause:
        raise CheckpointError(
            f"The process that reads checkpoints cannot be started ({cause.strerror or cause}). Close other programs."
        ) from cause


def serve() -> None:
    """Be that process."""
    for name in _REHEARSED:  # imports what most checkpoints need, once for all of them
        if shipped_unchanged(name):
            judge(TrialRequest(reference=name))
    serve_requests(_answer)


def _answer(request: str, note: Note) -> str:
    asked = msgspec.convert(json.loads(request), TrialRequest)
    constants.HF_HUB_CACHE = asked.cache or constants.HF_HUB_CACHE
    return _encoded(judge(asked, note=note))


def _encoded(value: TrialRequest | Verdict) -> str:
    return json.dumps(msgspec.to_builtins(value))  # which takes also what is no text, half a character say


def _limits(request: TrialRequest) -> Limits:
    """A larger vocabulary may take longer."""
    size, (seconds, memory) = 0, _A_MB
    with suppress(CheckpointError, OSError):  # which the process says
        path = find(request.reference)
        if path.is_file():
            size, (seconds, memory) = read_gguf(path).length, _A_MB_OF_GGUF
        elif (path / "tokenizer.json").is_file():
            size = min((path / "tokenizer.json").stat().st_size, TEXT_BYTES)
    megabytes = size / (1 << 20)
    return replace(
        LIMITS,
        processor_seconds=LIMITS.processor_seconds + seconds * megabytes,
        memory=LIMITS.memory + int(memory * megabytes),
    )


def _title(reference: str) -> str:
    whole = whole_of(reference) or reference
    return parse(whole).title if is_hub(whole) else title_of(Path(whole))
