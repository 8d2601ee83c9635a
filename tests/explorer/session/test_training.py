"""A training in the state: what a person does to it, what its process tells, and that its curves stay bounded."""

from __future__ import annotations

from dataclasses import replace

from attention_explorer.session.intents import SetText, TellTraining, Train, TrainingTold
from attention_explorer.session.reduce import reduce
from attention_explorer.session.session import Session
from attention_explorer.session.state import Notice, State
from attention_explorer.session.training import MOST_POINTS, Curves, TrainingState
from attention_models.protocol.training_messages import (
    Asked,
    Began,
    Dissect,
    Dissected,
    Ended,
    Failed,
    Fell,
    FromProcess,
    Go,
    HeldOutPoint,
    Learned,
    Measured,
    NotDissected,
    OneBatch,
    Pause,
    Said,
    Save,
    Saved,
    SnapshotWritten,
    TrainingPoint,
)
from attention_models.training.experiment import experiment
from attention_models.training.gradient_breakdown import break_down_gradient

ASKED = Asked("reverse:10")
BEGAN = Began("/private/training/1", "write the letters backwards", "hqbd", 1000)


def point(step: int, gradients: tuple[tuple[str, float], ...] = ()) -> TrainingPoint:
    return TrainingPoint(step, 1 / step, 0.5, 0.001, 1000.0, gradients)


def learned(*steps: int) -> Learned:
    return Learned(tuple(map(point, steps)), 1.5, 0.25, "running")


def after(*messages: FromProcess | Fell, state: State | None = None) -> State:
    """What the process of the first training tells, in turn."""
    state = reduce(state or State(), Train(ASKED))
    for message in messages:
        state = reduce(state, TrainingTold(1, message))
    return state


def of(state: State) -> TrainingState:
    assert state.live.learning is not None
    return state.live.learning


def said_in(state: State) -> str:
    assert state.notice is not None
    return state.notice.text


def test_it_is_opened_as_soon_as_it_is_made():
    state = after(BEGAN)
    assert of(state).phase == "running"
    assert state.document.checkpoint == state.loading == f"{BEGAN.folder}@0"  # which nothing writes anew
    assert not of(after()).folder


def test_a_model_that_was_opened_meanwhile_stays_when_the_training_is_taken_up_again():
    state = after(BEGAN, SnapshotWritten(40), Fell(-9))
    other = reduce(state, SetText("abc"))
    taken_up = reduce(reduce(other, TellTraining(Go())), TrainingTold(1, Began(BEGAN.folder, "", "", 1, step=40)))
    assert of(taken_up).phase == "running"
    assert taken_up.document == other.document


def test_what_it_learns_is_told():
    state = after(BEGAN, learned(1, 2, 3), Measured(HeldOutPoint(3, 2.0, 0.5, 0.25, 500)), SnapshotWritten(0))
    training = of(state)
    assert [p.step for p in training.curves.points] == [1, 2, 3]
    assert (training.step, training.seconds, training.fraction, training.speed) == (3, 1.5, 0.25, 1000.0)
    assert training.seconds_left == 4.5  # a quarter took 1.5 s
    assert training.held_out is not None
    assert training.held_out.sequences_right == 0.25
    assert training.snapshot == 0


def test_what_another_training_tells_is_passed_by():
    state = reduce(after(BEGAN), Train(Asked("copy:4")))
    assert of(state).number == 2
    assert reduce(state, TrainingTold(1, learned(1))) is state


def test_curves_are_bounded_and_evenly_thinned():
    curves = Curves()
    for begin in range(1, 5001, 50):
        curves = curves.with_points(tuple(point(step, (("head", 1.0),)) for step in range(begin, begin + 50)))
    for step in range(2000):
        curves = curves.with_held_out(HeldOutPoint(step, 1.0, 1.0, 1.0, 5))
    steps = [p.step for p in curves.points]
    assert steps[0] == 1
    assert steps[1:] == list(range(16, 5001, 16))  # 5,000 steps by 16 are 312; by 8 they would be 625
    for kept in (curves.points, curves.norms, curves.held_out):
        assert 1 < len(kept) <= MOST_POINTS
        assert [p.step for p in kept] == sorted({p.step for p in kept})
    assert curves.held_out[-1].step == 1999


def test_going_back_to_a_snapshot_cuts_the_curves_there():
    state = after(BEGAN, learned(1, 2, 3, 4), Measured(HeldOutPoint(4, 2.0, 0.5, 0.25, 500)), learned(3))
    assert [p.step for p in of(state).curves.points] == [1, 2, 3]
    assert of(state).curves.held_out == ()


def test_sentences_are_shown_and_a_process_that_fell_can_be_taken_up():
    said = after(BEGAN, Said("The disk is full."))
    assert (of(said).phase, said_in(said)) == ("running", "The disk is full.")
    fell = after(BEGAN, SnapshotWritten(40), Fell(-9))
    assert of(fell).phase == "failed"
    assert "snapshot of step 40 is kept" in said_in(fell)
    assert of(reduce(fell, TellTraining(OneBatch()))).phase == "starting"
    assert fell.notice is not None
    for message in (Go(), OneBatch(), Save("/home/me/model")):
        assert reduce(fell, TellTraining(message)).notice is None  # it goes on
    assert reduce(fell, Train(Asked("copy:4"))).notice is None
    other = replace(fell, notice=Notice("error", "The disk is full."))
    assert reduce(other, TellTraining(Go())).notice == other.notice
    never = after(Failed("There is no task “dance”."))
    assert reduce(never, TellTraining(Go())) is never


def test_the_end_and_its_notice():
    ended = after(BEGAN, learned(1, 2), Ended("done", 2, 1.0))
    assert (of(ended).phase, of(ended).fraction, ended.notice) == ("ended", 1.0, None)
    diverged = after(BEGAN, Ended("diverged", 7, 1.0, "At step 7 the loss is no number."))
    assert said_in(diverged) == of(diverged).sentence == "At step 7 the loss is no number."
    saved = after(BEGAN, learned(1), Saved("/home/me/model"))
    assert (of(saved).saved, of(saved).saved_step) == ("/home/me/model", 1)


def test_undo_and_the_document_know_nothing_of_it(qtbot):
    session = Session()
    session.dispatch(SetText("abc"))
    session.dispatch(Train(ASKED))
    before = session.state.document
    for step in range(1, 50):
        session.dispatch(TrainingTold(1, learned(step)))
    session.dispatch(TellTraining(Pause()))
    assert session.state.document is before
    session.undo()
    assert session.state.document.text == ""
    assert of(session.state).step == 49


def test_a_step_is_taken_apart_while_the_training_is_paused_and_forgotten_when_it_is_taken():
    first = break_down_gradient(
        experiment("copy:4", {"width": "16", "heads": "2", "layers": "1", "batch": "8"}).training()
    )
    running = after(BEGAN)
    assert reduce(running, TellTraining(Dissect())) is running
    paused = reduce(running, TrainingTold(1, Learned((), 0.0, 0.0, "paused")))
    asked = Dissect(token=4)
    waiting = reduce(paused, TellTraining(asked))
    assert (of(waiting).command, of(waiting).is_dissecting) == (asked, True)
    assert not of(reduce(waiting, TrainingTold(1, Dissected(first)))).is_dissecting
    assert not of(reduce(waiting, TrainingTold(1, learned(1)))).is_dissecting
    assert not of(reduce(waiting, TrainingTold(1, NotDissected("It cannot be.")))).is_dissecting
    shown = reduce(paused, TrainingTold(1, Dissected(first)))
    assert of(shown).dissection == first
    assert of(reduce(shown, TrainingTold(1, learned(1)))).dissection is None
    why = reduce(paused, TrainingTold(1, NotDissected("It cannot be.")))
    assert of(why).undissected == "It cannot be."
    assert why.notice == paused.notice
    assert of(reduce(why, TellTraining(Dissect()))).undissected == ""
    assert of(reduce(why, TrainingTold(1, learned(1)))).undissected == ""
    later = after(BEGAN, learned(1), Dissected(first))  # of a step that was taken meanwhile
    assert of(later).dissection is None
