"""What stands in a script stays there: words of a model cannot end the string that they are in."""

from __future__ import annotations

import contextlib
import io

from attention_models.scripts.script_text import Script

NASTY = 'a" + str(1 / 0) + "b\\\n\u202e'


def test_words_of_a_model_are_shown_and_nothing_else_is_run() -> None:
    script = Script("A name that would be code")
    script.line("values = torch.tensor([1.0, 2.0])")
    script.show(NASTY, "values[0]", 1.0)
    script.show_each(NASTY, "values.tolist()", [1.0, 2.0])
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(script.code(), "script", "exec"), {})
    lines = said.getvalue().splitlines()
    assert len(lines) == 3
    assert all(line.startswith("a' + str(1 / 0) + 'b/") for line in lines)
