"""Reading a file of texts is a chain of short requests; what is asked of it is undone and saved like all else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from attention_explorer.session import files
from attention_explorer.session.corpus import corpus_means, corpus_view
from attention_explorer.session.intents import (
    AskCorpus,
    ChooseCorpus,
    ChooseProbe,
    Intent,
    OpenCheckpoint,
    PutIntervention,
    ReadCorpus,
    RestoreDocument,
    SetBadges,
    ShowPlace,
)
from attention_explorer.session.session import Session
from attention_explorer.session.state import CorpusChoice, Document, Selection
from attention_models.protocol.corpus import CorpusQuestion, CorpusRequest, CorpusView
from attention_models.protocol.interventions import Scale
from attention_models.protocol.request import Failure, Request, Result
from attention_models.protocol.roles import RolesRequest
from attention_models.protocol.values import SiteRef
from tests.explorer.session import answers
from tests.explorer.session.answers import after
from tests.explorer.session.test_effects import Story

FILE = CorpusRequest(path="/texts.txt")


def view(request: CorpusRequest = FILE, answers: int = 1, ended: bool = False) -> CorpusView:
    nothing = np.zeros((0, 0))
    return CorpusView(
        request=request,
        sites=(),
        mean=nothing,
        texts_at=nothing,
        texts_with=nothing,
        distances=nothing,
        by_distance=nothing,
        scores=nothing,
        even=nothing,
        hits=(),
        rows=(),
        row_sites=(),
        texts=3,
        lines=3,
        tokens=9,
        share=0.5,
        ended=ended,
        left_out=(),
        left_out_count=0,
        seconds=0.1,
        answers=answers,
    )


class Reading(Story):
    def after(self, step: Intent | Result) -> tuple[Request, ...]:
        return tuple(r for r in super().after(step) if isinstance(r, CorpusRequest))


def _found(story: Story) -> CorpusView:
    found = corpus_view(story.state)
    assert found is not None
    return found


@pytest.fixture
def story() -> Reading:
    story = Reading()
    story.after(answers.loaded())
    story.after(answers.ran())
    return story


def test_each_answer_asks_for_the_next_texts_up_to_the_last(story):
    assert story.after(ChooseCorpus("/texts.txt")) == (FILE,)
    assert story.after(view()) == (replace(FILE, have=1),)
    assert story.after(view(replace(FILE, have=1), 2)) == (replace(FILE, have=2),)
    assert story.after(view(replace(FILE, have=2), 3, ended=True)) == ()
    assert not story.state.reading
    assert _found(story).answers == 3
    assert story.after(ReadCorpus(True)) == (FILE,)  # once more, from the beginning


def test_it_is_stopped_where_it_is_and_goes_on_there(story):
    story.after(ChooseCorpus("/texts.txt"))
    story.after(view())
    assert story.after(ReadCorpus(False)) == ()
    assert story.after(view(replace(FILE, have=1), 2)) == ()  # what was under way counts
    assert story.after(ReadCorpus(True)) == (replace(FILE, have=2),)
    stale = Failure(request=replace(FILE, have=2), sentence="", stale=True)
    assert story.after(stale) == (FILE,)  # the engine let go of it


def test_another_question_or_change_reads_anew_and_hides_what_was_found(story):
    story.after(ChooseCorpus("/texts.txt"))
    story.after(view())
    other = replace(FILE, question=CorpusQuestion("next"))
    assert story.after(AskCorpus(other.question)) == (other,)
    assert corpus_view(story.state) is None
    means = corpus_means(story.state)
    assert means is not None
    assert means.answers == 1  # the means are the same whatever is asked
    edited = replace(other, interventions=(Scale(0.5),))
    assert story.after(PutIntervention(Scale(0.5))) == (edited,)
    assert corpus_means(story.state) is None


def test_another_model_ends_it_and_takes_what_it_found_along(story):
    story.after(ChooseCorpus("/texts.txt"))
    story.after(view())
    story.after(OpenCheckpoint("b"))
    assert story.after(answers.loaded("b")) == ()
    assert not story.state.reading
    assert corpus_means(story.state) is None


def test_a_file_that_cannot_be_read_ends_it_with_a_sentence(story):
    story.after(ChooseCorpus("/texts.txt"))
    story.after(view())
    failed = Failure(request=replace(FILE, have=1), sentence="texts.txt: line 700 is longer.")
    assert story.after(failed) == ()
    assert story.state.notice.text == "texts.txt: line 700 is longer."
    assert _found(story).texts == 3
    assert story.after(ChooseCorpus("/other.txt")) == (CorpusRequest(path="/other.txt"),)
    assert story.state.notice is None


def test_what_is_asked_is_undone_and_nothing_is_read_unasked():
    session = Session()
    for result in (answers.loaded(), answers.ran()):
        session._replace(after(session.state, result))
    asked: list[Request] = []
    session.requested.connect(asked.append)
    session.dispatch(ChooseCorpus("/texts.txt"))
    session.dispatch(AskCorpus(CorpusQuestion("self")))
    session.undo()
    assert session.state.document.corpus == CorpusChoice("/texts.txt")
    assert not session.state.reading
    count = len(asked)
    session.undo()
    assert session.state.document.corpus == CorpusChoice()
    session.redo()
    assert len(asked) == count
    assert session.state.recent_texts == ("/texts.txt",)


def test_files_chosen_lately_are_listed_the_last_one_first(story):
    for name in "abcabcdefghi":
        story.after(ChooseCorpus(f"/{name}") if name in "ace" else ChooseProbe(f"/{name}"))
    assert story.state.recent_texts == tuple(f"/{name}" for name in "ihgfedcb")
    assert story.state.document.probe == "/i"


def test_a_place_in_a_file_is_shown_and_undone_at_once():
    session = Session()
    for result in (answers.loaded(), answers.ran()):
        session._replace(after(session.state, result))
    before = session.state.document
    session.dispatch(ShowPlace("Anna went to a park", None, SiteRef("decoder", 3), 2, 4, 1))
    document = session.state.document
    assert (document.text, document.selection) == ("Anna went to a park", Selection(SiteRef("decoder", 3), 2, 4, 1))
    session._replace(after(session.state, answers.ran(2, "Anna went to a park")))
    assert session.state.selection == document.selection
    session.undo()
    assert session.state.document == before


def test_pairs_and_targets_go_where_the_model_reads_them():
    place = ("Tom fell", "He cried", SiteRef("encoder", 1), 2, 1, 1)
    for family, pairs, second, target in (
        ("masked", True, "He cried", None),
        ("seq2seq", False, None, "He cried"),
        ("causal", False, None, None),
    ):
        model = answers.loaded(pairs=pairs)
        state = after(Story().state, replace(model, info=replace(model.info, family=family)))
        document = after(state, ShowPlace(*place)).document
        assert (document.text, document.second, document.target) == ("Tom fell", second, target)


def test_a_session_file_holds_what_is_asked_and_old_ones_hold_nothing():
    document = Document(corpus=CorpusChoice("/a.txt", CorpusQuestion("word:ball", "Anna")), probe="/b.conllu")
    assert files.decode(files.encode(document)) == document
    assert b"corpus" not in files.encode(Document())
    assert b"probe" not in files.encode(Document())


def test_restoring_a_session_reads_nothing(story):
    restored = replace(story.state.document, corpus=CorpusChoice("/a.txt"))
    assert story.after(RestoreDocument(restored)) == ()
    assert not story.state.reading


def test_roles_that_cannot_be_found_are_asked_for_no_longer(story):
    story.after(SetBadges(True))
    story.after(ChooseProbe("/bad.txt"))
    story.after(Failure(request=RolesRequest(probe="/old.txt"), sentence="Of a file that is no longer chosen."))
    assert story.state.document.probe == "/bad.txt"
    story.after(Failure(request=RolesRequest(stop=True), sentence="", stale=True))
    assert story.state.document.heads.badges
    story.after(Failure(request=RolesRequest(probe="/bad.txt"), sentence="bad.txt holds zero bytes."))
    assert (story.state.document.probe, story.state.document.heads.badges) == ("", True)
    assert story.state.notice.text == "bad.txt holds zero bytes."
    story.after(Failure(request=RolesRequest(), sentence="There is not enough memory."))
    assert not story.state.document.heads.badges
