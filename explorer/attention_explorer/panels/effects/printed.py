"""What “Show as PyTorch” writes of each page of Effects: the selected head, position or layer of it. Pure."""

from __future__ import annotations

from attention_explorer.panels.effects.questions import request_of, why_not
from attention_explorer.panels.selected_head import predicting_position
from attention_explorer.session.state import State
from attention_models.protocol.effects import EffectsRequest, HeadEffectRequest
from attention_models.protocol.in_context import InContextAtRequest, InContextRequest
from attention_models.protocol.lens import LensAtRequest, LensRequest
from attention_models.protocol.patching import BY_POSITION, PatchColumnRequest, PatchRequest
from attention_models.protocol.request import Request


def printed(page: int, state: State, layer: int) -> Request | None:
    """None where the page has no figures yet. `layer` is that of the page Words, 0 the embedding."""
    if state.ran is None or why_not(page, state):
        return None
    site, head, position = state.selection.site, state.selection.head, predicting_position(state, state.ran)
    match request_of(page, state):
        case EffectsRequest(run=run, aim=aim):
            return None if site is None else HeadEffectRequest(run=run, aim=aim, site=site, head=head)
        case LensRequest(run=run, target=target):
            return LensAtRequest(run=run, target=target, position=position)
        case PatchRequest(run=run, other=other, kind=kind, align=align, aim=aim):
            if kind in BY_POSITION:
                return PatchColumnRequest(run=run, other=other, kind=kind, align=align, aim=aim, column=position)
            return PatchColumnRequest(run=run, other=other, kind=kind, align=align, aim=aim, site=site, column=head)
        case InContextRequest(texts=texts, words=words, starts=starts, interventions=interventions):
            return InContextAtRequest(texts=texts, words=words, starts=starts, interventions=interventions, layer=layer)
        case other_page:
            return other_page
