"""The program that is attacked: an engine with a checkpoint open, told on standard input what to do next.

Each line is a JSON list of what to do and a name; each answer is a JSON table. Started by `tests.hostile.attack`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from attention_models.engine.engine import Engine
from attention_models.protocol.head import HeadRequest, HeadView
from attention_models.protocol.loading import Described, DescribeRequest, Loaded, LoadRequest
from attention_models.protocol.request import Failure
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.values import SiteRef
from tests.models.asking import ask

RUN = 5  # the ticket of the run that has to stay


def begin(engine: Engine, reference: str, inputs: RunInputs) -> None:
    loaded = ask(engine, LoadRequest(reference=reference))
    assert isinstance(loaded, Loaded), loaded
    ran = ask(engine, ForwardRequest(inputs=inputs, ticket=RUN))
    assert isinstance(ran, Ran), ran


def weights(engine: Engine) -> bytes:
    """Of a head of the run that was there before."""
    site = SiteRef("encoder" if engine.workspace.model and engine.workspace.model.info.channels else "decoder", 1)
    view = ask(engine, HeadRequest(run=RUN, site=site, head=2))
    assert isinstance(view, HeadView), view
    return view.weights.tobytes()


def describe(engine: Engine, reference: str) -> dict[str, Any]:
    described = ask(engine, DescribeRequest(reference=reference))
    assert isinstance(described, (Described, Failure))
    return {"said": described.refusal if isinstance(described, Described) else described.sentence}


def load(engine: Engine, reference: str) -> dict[str, Any]:
    loaded = ask(engine, LoadRequest(reference=reference))
    if isinstance(loaded, Failure):
        return {"said": loaded.sentence}
    assert isinstance(loaded, Loaded)
    return {"opened": True}


def read(engine: Engine, text: str) -> dict[str, Any]:
    ran = ask(engine, ForwardRequest(inputs=RunInputs(text), ticket=9))
    return {"said": ran.sentence} if isinstance(ran, Failure) else {"opened": True}


def look(engine: Engine, path: str) -> dict[str, Any]:
    ran = ask(engine, ForwardRequest(inputs=RunInputs(picture=path), ticket=9))
    return {"said": ran.sentence} if isinstance(ran, Failure) else {"opened": True}


def main() -> None:
    sound, kind, source = sys.argv[1:]
    inputs = RunInputs(picture=source) if kind == "picture" else RunInputs(source)
    engine = Engine()
    begin(engine, sound, inputs)
    before = weights(engine)
    print(json.dumps({}), flush=True)
    for line in sys.stdin:
        what, name = json.loads(line)
        if what == "begin":
            begin(engine, sound, inputs)
            answer: dict[str, Any] = {}
        elif what == "untouched":
            answer = {"untouched": weights(engine) == before}
        else:
            answer = {"describe": describe, "load": load, "read": read, "look": look}[what](engine, name)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
