"""Short texts for models to go on with: fifty beginnings of stories and fifty English sentences to translate."""

from __future__ import annotations

_NAMES = ("Tom", "Anna", "The old man", "A little girl", "My brother")
_BEGINNINGS = (
    "went to the park with",
    "saw a big red",
    "was very happy because",
    "did not want to",
    "found a small box in",
    "asked the dog to",
    "made a cake and",
    "lost the blue",
    "said to the cat,",
    "ran home when",
)
_SUBJECTS = ("The teacher", "My sister", "The black cat", "She", "Our neighbour")
_ENDINGS = (
    "is very tired today.",
    "lives in a small house.",
    "wants to buy a new car.",
    "was reading a book in the garden.",
    "does not like cold water.",
    "opened the window.",
    "has three brothers.",
    "will come back tomorrow.",
    "gave me the key.",
    "cannot find the money.",
)

STORIES = tuple(f"{name} {beginning}" for beginning in _BEGINNINGS for name in _NAMES)
ENGLISH = tuple(f"{subject} {ending}" for ending in _ENDINGS for subject in _SUBJECTS)
