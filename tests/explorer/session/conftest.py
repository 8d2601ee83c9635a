from __future__ import annotations

import pytest

from attention_explorer.session.state import State
from tests.explorer.session import answers


@pytest.fixture
def running() -> State:
    """story-gpt with its example run: "Tom and Anna went"."""
    return answers.after(State(), answers.loaded(), answers.ran())
