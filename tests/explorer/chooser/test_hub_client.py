"""What the window knows of a hub, with one that answers as told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from attention_explorer.chooser.hub_client import HubClient
from attention_models.protocol.hub import FetchRequest, LookUpRequest
from tests.explorer.chooser.fake_hub import FakeHub


@pytest.fixture
def hub() -> FakeHub:
    return FakeHub()


@pytest.fixture
def client(qapp, hub) -> Iterator[HubClient]:
    client = HubClient(lambda: hub)
    yield client
    assert client.stop(10)


def test_looked_up(client, hub, qtbot):
    client.look_up("a/b", offline=False)
    assert client.is_asking
    qtbot.waitUntil(lambda: client.listing is not None)
    assert not client.is_asking
    assert client.listing.reference == "hf://a/b"
    assert [(type(r), r.text, r.offline) for r in hub.asked] == [(LookUpRequest, "a/b", False)]


def test_a_refusal_is_a_sentence_and_the_next_question_ends_it(client, hub, qtbot):
    hub.refuses = "There is no connection."
    client.look_up("a/b", offline=False)
    qtbot.waitUntil(lambda: client.sentence != "")
    assert (client.sentence, client.listing, client.is_asking) == ("There is no connection.", None, False)
    hub.refuses = ""
    client.look_up("a/b", offline=True)
    assert client.sentence == ""
    qtbot.waitUntil(lambda: client.listing is not None)
    assert hub.asked[-1].offline


def test_fetched_with_its_progress(client, hub, qtbot):
    client.look_up("a/b", offline=False)
    qtbot.waitUntil(lambda: client.listing is not None)
    client.fetch(offline=False)
    qtbot.waitUntil(lambda: client.progress is not None)
    assert client.progress.fraction == 0.25
    assert client.is_fetching
    hub.gate.set()
    qtbot.waitUntil(lambda: client.fetched is not None)
    assert (client.is_fetching, client.progress) == (False, None)
    assert isinstance(hub.asked[-1], FetchRequest)
    assert hub.asked[-1].listing is client.listing


def test_called_off(client, hub, qtbot):
    client.look_up("a/b", offline=False)
    qtbot.waitUntil(lambda: client.listing is not None)
    client.fetch(offline=False)
    qtbot.waitUntil(lambda: client.progress is not None)
    client.cancel()
    assert not client.is_fetching  # at once, whatever the thread is waiting for
    qtbot.waitUntil(hub.cancelled.is_set)
    assert client.fetched is None
    client.look_up("a/b", offline=False)
    qtbot.waitUntil(lambda: not client.is_asking)
    assert client.listing.missing == 50_000_000


def test_nothing_to_fetch_or_to_cancel(client, hub):
    client.fetch(offline=False)
    client.cancel()
    assert hub.asked == []
