"""Another attention function in a script: transformers' eager one, wrapped where its own file looks it up."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.values import SiteRef
from attention_models.scripts.script_text import Script

_NAME = "eager_attention_forward"


def home_of(model: Model, trace: Trace, sites: Sequence[SiteRef]) -> str:
    """The Python module whose attention function the modules of `sites` call; "" where they call none of one name.

    Nor is there one where an attention module runs more than once, as where layers share their weights.
    """
    named = [site.module for site in trace.sites]
    homes = set()
    for ref in sites:
        name = trace.sites[trace.index(ref)].module
        if not name or named.count(name) != 1:
            return ""
        homes.add(type(model.module.get_submodule(name)).__module__)
    home = homes.pop() if len(homes) == 1 else ""
    return home if hasattr(sys.modules.get(home), _NAME) else ""


def wrap(script: Script, home: str, changes: Sequence[str]) -> None:
    """Lines after which `changes` act on what attention gives: `out` (1, queries, heads, size) and `weights`.

    They stand in a function of `module`, `query`, `key` and `value` (1, key heads, keys, size).
    """
    package, _, name = home.rpartition(".")
    script.uses(f"from {package} import {name} as modeling")
    lines = [
        "eager = modeling.eager_attention_forward",
        "",
        "def attend(module, query, key, value, *args, **kwargs):",
        "    out, weights = eager(module, query, key, value, *args, **kwargs)",
        *(f"    {line}" for line in changes),
        "    return out, weights",
        "",
        "modeling.eager_attention_forward = attend",
    ]
    script.line("\n".join(lines), "softmax(Q K^T * scaling) V, as the model's own file has it")
