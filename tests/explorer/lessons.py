"""A lesson as somebody writes it."""

from __future__ import annotations

from tests.explorer.real_window import EXAMPLE

BEGINNING = f'''
title = "Trial"
about = "For a test."
minutes = 1

[[step]]
title = "A row"
say = "Row {{row}}."
notes = "Wait for a hand to go up."
[step.show]
text = "{EXAMPLE}"
layer = 5
head = 5
query = "to"
query_place = 2
panel = "map"
[step.figures]
row = {{ kind = "peak weight" }}
most = {{ kind = "peak" }}
[step.ask]
question = "Where?"
click = "most"
hide = "row"
reveal = "It is {{most}}."
'''
"""Its head and a first step, which asks for a key and covers the row; a test writes the steps that it needs after."""
