"""An engine in a process that may have little more memory than it has: what is said, what is freed, what stays open.

Run as a program with the folder of a checkpoint that is too large; it prints what happened, as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from attention_models.protocol.running import RunInputs

PAGE_TEXT = "Tom and Anna went to the park. "
MB = 1_000_000


def taken(kind: str) -> int:
    """Bytes of this process: "VmSize" of addresses, "VmRSS" of memory."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(kind))
    return int(line.split()[1]) * 1024


def main(folder: str) -> dict[str, Any]:
    import resource

    from attention_models.engine.engine import Engine
    from attention_models.files import devices
    from attention_models.protocol.head import HeadRequest, HeadView
    from attention_models.protocol.loading import Loaded, LoadRequest
    from attention_models.protocol.request import Failure
    from attention_models.protocol.running import ForwardRequest, Ran
    from tests.models.asking import SITE, never, silent

    engine, hard = Engine(), resource.getrlimit(resource.RLIMIT_AS)[1]

    def within(room: int, request: Any) -> dict[str, Any]:
        devices.free()
        before = taken("VmRSS")
        resource.setrlimit(resource.RLIMIT_AS, (taken("VmSize") + room * MB, hard))
        result = engine.run(request, never, silent)
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        assert isinstance(result, Failure), result
        left = taken("VmRSS") - before
        return {"sentence": result.sentence, "no_room": str(result.no_room), "cause": result.cause, "left": left}

    def still_open(run: int) -> bool:
        head = engine.run(HeadRequest(run=run, site=SITE, head=0, ticket=run + 1), never, silent)
        return isinstance(head, HeadView)

    assert isinstance(engine.run(LoadRequest(reference="story-gpt", ticket=1), never, silent), Loaded)
    assert isinstance(engine.run(ForwardRequest(inputs=RunInputs(PAGE_TEXT), ticket=2), never, silent), Ran)
    told: dict[str, Any] = {"loads": {}}
    for room in (20, 75, 100):
        told["loads"][room] = within(room, LoadRequest(reference=folder, ticket=3))
    told["load leaves open"] = still_open(2)
    assert isinstance(engine.run(LoadRequest(reference=folder, ticket=4), never, silent), Loaded)
    assert isinstance(engine.run(ForwardRequest(inputs=RunInputs(PAGE_TEXT), ticket=5), never, silent), Ran)
    told["text"] = within(60, ForwardRequest(inputs=RunInputs(PAGE_TEXT * 150), ticket=6))
    told["text leaves open"] = still_open(5)
    told["goes on"] = isinstance(engine.run(ForwardRequest(inputs=RunInputs("Tom"), ticket=7), never, silent), Ran)
    return told


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
