"""Views of real heads, for the tests of what is drawn of them."""

from __future__ import annotations

from functools import cache

import attention_models as models
from attention_explorer.panels.flow.matrices_scene import Scene
from attention_models.protocol.interventions import Intervention, Mask, Scale
from attention_models.protocol.matrices import MatricesRequest, MatricesView
from attention_models.protocol.values import SiteRef
from attention_models.views.matrices import matrices_view
from tests.explorer.real_window import EXAMPLE

SITE, HEAD = SiteRef("decoder", 5), 5


@cache
def shown(first_query: int = 0, first_key: int = 0, edited: bool = False, times: int = 1) -> MatricesView:
    """Layer 5, head 5 of story-gpt on the example, so many times over."""
    model = models.open_checkpoint("story-gpt")
    edits: list[Intervention] = [Scale(0.5), Mask("painted", cells=((3, 1, False),))] if edited else []
    trace = models.run(model, " ".join([EXAMPLE] * times), interventions=edits)
    request = MatricesRequest(run=1, site=SITE, head=HEAD, first_query=first_query, first_key=first_key)
    return matrices_view(request, model, trace)


def names(view: MatricesView) -> tuple[list[str], list[str]]:
    """A name for every query and key of the whole text."""
    return [f"q{i}" for i in range(view.queries)], [f"k{i}" for i in range(view.keys)]


def scene_of(view: MatricesView) -> Scene:
    return Scene.of(view, *names(view))
