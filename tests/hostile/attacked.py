"""The program that is attacked: an engine with a checkpoint open, told on standard input what to open next.

Each line is a JSON list of a kind and a name; each answer is a JSON table. Started by `tests.hostile.attack`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from models.engine.engine import Engine
from models.protocol.describing import Described, DescribeRequest
from models.protocol.head import HeadRequest, HeadView
from models.protocol.loading import Loaded, LoadRequest
from models.protocol.request import Failure
from models.protocol.run_inputs import RunInputs
from models.protocol.running import ForwardRequest, Ran
from models.protocol.values import SiteRef
from tests.models.asking import ask

RUN = 5  # the ticket of the run that has to stay
TEXTS = ("a" * 60, "x" * 40 + " =" + "a " * 10, "1" * 50 + "\n" * 5)
"""What regular expressions of an ill will take long over."""


def weights(engine: Engine) -> bytes:
    view = ask(engine, HeadRequest(run=RUN, site=SiteRef("decoder", 1), head=2))
    assert isinstance(view, HeadView), view
    return view.weights.tobytes()


def begin(engine: Engine, reference: str, text: str) -> bytes:
    loaded = ask(engine, LoadRequest(reference=reference))
    assert isinstance(loaded, Loaded), loaded
    assert isinstance(ask(engine, ForwardRequest(inputs=RunInputs(text), ticket=RUN)), Ran)
    return weights(engine)


def attacked(engine: Engine, reference: str) -> dict[str, Any]:
    described = ask(engine, DescribeRequest(reference=reference))
    assert isinstance(described, (Described, Failure))
    said = [described.refusal if isinstance(described, Described) else described.sentence]
    loaded = ask(engine, LoadRequest(reference=reference))
    opened = isinstance(loaded, Loaded)
    if isinstance(loaded, Failure):
        said.append(loaded.sentence)
    elif engine.workspace.model is not None and engine.workspace.model.info.family != "vision":
        for text in TEXTS:
            ran = ask(engine, ForwardRequest(inputs=RunInputs(text), ticket=9))
            said += [ran.sentence] if isinstance(ran, Failure) else []
    return {"said": said, "opened": opened}


def looked_at(engine: Engine, path: str) -> dict[str, Any]:
    ran = ask(engine, ForwardRequest(inputs=RunInputs(picture=path), ticket=9))
    return {"said": [ran.sentence] if isinstance(ran, Failure) else [], "opened": isinstance(ran, Ran)}


def main() -> None:
    sound, text = sys.argv[1:]
    engine = Engine()
    before = begin(engine, sound, text)
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        kind, name = json.loads(line)
        answer = attacked(engine, name) if kind == "checkpoint" else looked_at(engine, name)
        if kind == "checkpoint" and answer["opened"]:
            begin(engine, sound, text)
            answer["untouched"] = True
        elif kind == "checkpoint":
            answer["untouched"] = weights(engine) == before
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
