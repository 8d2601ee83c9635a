"""Which requests follow from a change of state. Pure; panels ask for their own pictures, the session for these.

- A checkpoint was chosen: load it.
- Another step of its training was chosen: its weights, and the run with them, in one.
- The text, or what is changed while it runs, is not what ran, and the checkpoint it is meant for is open: run it.
  While another one loads nothing runs, since the text may be meant for a model that is not there yet.
- More or less was written after the text than what ran, and the window follows: run it with that.
- A step of decoding was asked for, by the player or into the input: write it.
- A checkpoint, or another step of its training, ran for the first time: check it against its own attention. If the
  text changes before the answer, the next run is checked instead. A long text is checked when somebody asks: it takes
  as long as running it did.
- A file of texts is being read: its next texts; anew where what is looked for, or changed while the model runs, is
  other than it was.
- B was let go: the engine lets go of its run and its model.
- A measurement is under way: its next batch, and after a load, which called it off, the same one again. Stopped by a
  person, the engine is told so, and lets go of its models.
"""

from __future__ import annotations

from dataclasses import replace

from attention_explorer.session.corpus import corpus_view
from attention_explorer.session.state import State
from attention_models.protocol.corpus import CorpusRequest
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.quality import QualityView
from attention_models.protocol.request import Request
from attention_models.protocol.run_inputs import RunInputs
from attention_models.protocol.running import ForwardRequest, Ran, RerunRequest
from attention_models.protocol.trust import TrustRequest
from attention_models.protocol.two_runs import DropOtherRequest


def initial_requests(state: State) -> tuple[Request, ...]:
    """What to ask for when the window opens."""
    return (LoadRequest(reference=state.document.checkpoint, placement=state.placement),)


def effects(old: State, new: State) -> tuple[Request, ...]:
    """What to ask for now that `old` became `new`."""
    requests: list[Request] = []
    if new.loading is not None and (new.loading, new.placement) != (old.loading, old.placement):
        requests.append(LoadRequest(reference=new.loading, placement=new.placement))
    if new.stepping is not None and new.stepping is not old.stepping:
        requests.append(new.stepping)
    if new.pending_step is not None and new.pending_step is not old.pending_step:
        requests.append(new.pending_step.request)
    forward = _wanted_forward(new)
    is_new_model = new.results.loaded is not old.results.loaded
    if forward is not None and (is_new_model or forward != _wanted_forward(old)):
        edits_alone = (
            not is_new_model and new.ran is not None and _unedited(new.ran.inputs) == _unedited(forward.inputs)
        )
        requests.append(RerunRequest(inputs=forward.inputs) if edits_alone else forward)
    ran = new.ran if new.ran is not old.ran else None
    is_unmeasured = old.ran is None or is_new_model or TrustRequest.lane in old.live.busy
    if ran is not None and is_unmeasured and not _is_long(ran):
        requests.append(TrustRequest(run=ran.run))
    if old.document.compared is not None and new.document.compared is None:
        requests.append(DropOtherRequest())
    requests += _measuring(old, new, called_off=bool(requests) and isinstance(requests[0], LoadRequest))
    texts = _wanted_texts(new)
    if texts is not None and texts != _wanted_texts(old):
        requests.append(texts)
    return tuple(requests)


def _measuring(old: State, new: State, called_off: bool) -> list[Request]:
    if new.measuring is not None:
        return [new.measuring] if called_off or new.measuring != old.measuring else []
    if old.measuring is None or new.results.of(QualityView) is not old.results.of(
        QualityView
    ):  # the last answer ends it too
        return []
    return [replace(old.measuring, stop=True)]


def _wanted_texts(state: State) -> CorpusRequest | None:
    """The next texts of the file that is being read."""
    if not state.reading or state.results.loaded is None or state.loading is not None:
        return None
    view = corpus_view(state)
    return replace(state.document.corpus_request, have=0 if view is None else view.answers)


def _is_long(ran: Ran) -> bool:
    return any(site.is_long for site in ran.sites)


def _unedited(inputs: RunInputs) -> RunInputs:
    return replace(inputs, interventions=())


def _wanted_forward(state: State) -> ForwardRequest | None:
    inputs = state.inputs
    if state.results.loaded is None or state.loading is not None or state.caught_up or inputs == state.refused:
        return None
    return ForwardRequest(inputs=inputs)
