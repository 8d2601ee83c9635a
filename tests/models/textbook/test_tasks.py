"""Each row of a task is right by another computation, and none is both learned from and held out."""

from __future__ import annotations

import random
import re
from datetime import date
from itertools import pairwise

import pytest

from attention_models.textbook import tasks
from attention_models.textbook.tasks import TASKS, Row, balanced, date_pair, date_pairs, text_parts

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def read(text: str) -> date:
    """The date that `text` means, read without the forms that wrote it."""
    text = text.lower()
    month_names = [word for word in re.findall("[a-z]+", text) if word[:3] in MONTHS and word not in WEEKDAYS]
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    if month_names:
        numbers.insert(1, MONTHS.index(month_names[0][:3]) + 1)
    day, month, year = numbers
    if year < 100:
        year += 1900 if year >= 50 else 2000
    return date(year, month, day)


def test_every_text_means_its_date():
    for text, day in date_pairs(3_000, seed=5):
        found = read(text)
        assert found.isoformat() == day, text
        assert date(1950, 1, 1) <= found <= date(2049, 12, 31)
        said = [weekday for weekday in WEEKDAYS if weekday in text.lower()]
        assert said in ([], [WEEKDAYS[found.weekday()]]), text


def test_every_form_comes_about_as_often(monkeypatch):
    counts = dict.fromkeys(tasks._FORMS, 0)

    class Counting(random.Random):
        def choice(self, forms):
            chosen = super().choice(forms)
            counts[chosen] += 1
            return chosen

    rng = Counting(1)
    for _ in range(2_200):
        date_pair(rng)
    assert min(counts.values()) > 150  # 200 each, less three standard deviations and a bit


def test_a_seed_gives_the_same_pairs_and_no_text_twice():
    pairs = date_pairs(500, seed=1)
    assert pairs == date_pairs(500, seed=1)
    assert pairs != date_pairs(500, seed=2)
    assert len({text for text, _ in pairs}) == 500
    assert 0.2 < sum(text == text.lower() and any(c.isalpha() for c in text) for text, _ in pairs) / 500 < 0.4


@pytest.mark.parametrize(("ending", "days"), [("st", (1, 21, 31)), ("nd", (2, 22)), ("rd", (3, 23)), ("th", None)])
def test_ordinals(ending, days):
    for day in days or (4, 10, 11, 12, 13, 14, 20, 24, 30):
        assert tasks._ordinal(day) == f"{day}{ending}"


# A list of its own, written down word by word: the grammar makes forms out of tables.
SPANISH = {
    **{"i": "", "you": "", "we": "", "he": "él", "she": "ella", "they": "ellos", "two": "dos", "not": "", "do": ""},
    **{"does": ""},
}
MASCULINE = "books book cars car hats hat shoes shoe watches watch boats boat boys boy doctors doctor friends friend"
NOUNS = {
    **{"apple": "manzana", "book": "libro", "car": "coche", "chair": "silla", "door": "puerta", "flower": "flor"},
    **{"hat": "sombrero", "house": "casa", "letter": "carta", "lamp": "lámpara", "shoe": "zapato", "table": "mesa"},
    **{"watch": "reloj", "boat": "barco", "boy": "niño", "girl": "niña", "doctor": "médico", "friend": "amigo"},
    **{"sister": "hermana", "woman": "mujer"},
}
STEMS = {
    **{"buy": "compr-ar", "draw": "dibuj-ar", "find": "encontr-ar", "have": "ten-er", "need": "necesit-ar"},
    **{"paint": "pint-ar", "see": "v-er", "sell": "vend-er", "want": "quer-er", "wash": "lav-ar"},
}
IRREGULAR = {
    "find": ["encuentro", "encuentras", "encuentra", "encontramos", "encuentran"],
    "have": ["tengo", "tienes", "tiene", "tenemos", "tienen"],
    "see": ["veo", "ves", "ve", "vemos", "ven"],
    "want": ["quiero", "quieres", "quiere", "queremos", "quieren"],
}
ENDINGS = {"ar": ["o", "as", "a", "amos", "an"], "er": ["o", "es", "e", "emos", "en"]}
COLOURS = {
    **{"red": "rojo", "white": "blanco", "black": "negro", "yellow": "amarillo", "green": "verde", "blue": "azul"},
    **{"new": "nuevo", "small": "pequeño"},
}


def spanish_of(sentence: str) -> str:
    """A translation by rule: endings of regular verbs, plurals and genders are made, not looked up."""
    words = sentence.split()
    subject = words[:2] if words[0] == "the" else words[:1]
    rest = words[len(subject) :]
    negated = "not" in rest
    verb = next(word for word in (w.removesuffix("s") for w in rest) if word in (*STEMS, "ha", "washe"))
    verb = {"ha": "have", "washe": "wash"}.get(verb, verb)
    after = rest[3:] if negated else rest[1:]
    plural_subject = len(subject) == 2 and subject[1] not in NOUNS
    person = {"i": 0, "you": 1, "we": 3, "they": 4}.get(subject[0], 4 if plural_subject else 2)
    stem, kind = STEMS[verb].split("-")
    form = IRREGULAR[verb][person] if verb in IRREGULAR else stem + ENDINGS[kind][person]
    said = phrase_of(subject) if len(subject) == 2 else SPANISH[subject[0]]
    return " ".join(f"{said} {'no' if negated else ''} {form} {phrase_of(after)}".split())


def phrase_of(words: list[str]) -> str:
    *before, noun = words
    single = next(
        s
        for s in (noun, noun.removesuffix("s"), noun.removesuffix("es"), {"women": "woman"}.get(noun, ""))
        if s in NOUNS
    )
    plural = noun != single
    feminine = single not in MASCULINE.split()
    article = {
        "the": ("la" if feminine else "el", "las" if feminine else "los"),
        "my": ("mi", "mis"),
        "one": ("una" if feminine else "un", ""),
        "two": ("", "dos"),
    }[before[0]][plural]
    said = NOUNS[single]
    colour = COLOURS[before[1]] if len(before) == 2 else ""
    if feminine and colour.endswith("o"):
        colour = colour[:-1] + "a"
    if plural:
        said, colour = (word and word + ("s" if word[-1] in "aeo" else "es") for word in (said, colour))
    return f"{article} {said} {colour}".strip()


UNPLEASANT = {"bad", "awful", "boring", "slow", "silly", "cold", "ugly", "rude", "tiring", "terrible"}


def feeling_of(sentence: str) -> str:
    """What the last clause says counts; "and" goes on with what the one before felt, and "but" turns it."""
    clauses = re.split(" but | and ", sentence)
    feelings = [("not" in clause.split()) == (clause.split()[-1] in UNPLEASANT) for clause in clauses]
    turns = [word == "but" for word in sentence.split() if word in ("but", "and")]
    assert [one != other for one, other in pairwise(feelings)] == turns
    return "positive" if feelings[-1] else "negative"


# --------------------------------------------------------------------------- every task


def is_right(name: str, difficulty: int, row: Row) -> bool:
    """Whether a row's answer is the one that its task asks for, worked out in another way."""
    prompt, answer = row.prompt, row.answer
    if name == "copy":
        return prompt == answer
    if name == "reverse":
        return all(prompt[-1 - i] == letter for i, letter in enumerate(answer)) and len(prompt) == len(answer)
    if name == "sort":
        return sorted(prompt) == sorted(answer) and all(a <= b for a, b in pairwise(answer))
    if name == "shift":
        size = len(prompt)
        return len(answer) == size and all(answer[i] == prompt[(i + difficulty) % size] for i in range(size))
    if name == "previous":
        return len(prompt) == len(answer) and f"_{prompt}"[: len(answer)] == answer
    if name in ("induction", "recall"):
        size = len(set(prompt[:-1]))
        fits = size == difficulty if name == "induction" else max(3, difficulty // 2) <= size <= difficulty
        return fits and size == len(prompt) - 1 and prompt + answer == 2 * prompt[:-1]
    if name == "brackets":
        left = prompt
        while (shorter := re.sub(r"\(\)|\[\]|\{\}", "", left)) != left:
            left = shorter
        return (left == "") == (answer == "yes") == balanced(prompt) and len(prompt) == 2 * difficulty
    if name in ("modular", "addition", "addition-reversed"):
        numbers = prompt.removesuffix("=").split("+")
        total = sum(map(int, numbers))
        if name == "addition-reversed":
            assert [len(number) for number in numbers] == [difficulty] * 2
            assert len(answer) == difficulty + 1
            answer = answer[::-1]
        wanted = int(answer)
        return wanted == (total % difficulty if name == "modular" else total)
    if name == "spanish":
        return spanish_of(prompt) == answer
    if name == "feeling":
        return feeling_of(prompt) == answer
    return read(prompt).isoformat() == answer


@pytest.mark.parametrize("harder", [False, True], ids=["usual", "harder"])
@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
def test_every_row_is_right(task, harder):
    difficulty = min(task.most, task.difficulty + 4) if harder else task.difficulty
    task.check(difficulty)
    rows = task.rows(400, random.Random(2), difficulty)
    for row in rows:
        assert is_right(task.name, difficulty, row), row
        prompt, answer = task.tokens(row.prompt), task.tokens(row.answer)
        assert {*prompt, *answer} <= set(task.alphabet)
        assert max(len(prompt), len(answer)) <= task.longest(difficulty)
        assert len([*task.tokens(task.asked(row)), *answer]) <= task.most_tokens(difficulty)
    assert len(set(rows)) > 200  # and they are not the same few
    if task.name == "brackets":
        assert 100 < sum(row.answer == "yes" for row in rows) < 300


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
def test_no_held_out_row_is_ever_learned_from(task):
    learned = {row for seed in range(4) for row in task.rows(1_000, random.Random(seed), task.difficulty)}
    held_out = {row for seed in range(4) for row in task.rows(200, random.Random(seed), task.difficulty, True)}
    assert not learned & held_out
    drawn = [task.make(rng, task.difficulty) for rng in [random.Random(9)] for _ in range(3_000)]
    share = sum(task.is_held_out(row) for row in drawn) / len(drawn)
    assert share == pytest.approx(1 / tasks.HELD_OUT_SHARE, abs=0.02)


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
def test_a_seed_gives_the_same_rows(task):
    one, again, other = (task.rows(50, random.Random(seed), task.difficulty) for seed in (1, 1, 2))
    assert one == again
    assert one != other


@pytest.mark.parametrize(
    ("name", "difficulty", "words"),
    [
        ("reverse", 2, "reverse takes 3 to 200 letters, and 2 is not among them"),
        ("shift", 12, "shift takes 1 to 11 places"),
        ("induction", 27, "induction takes 3 to 26 letters"),
        ("modular", 1, "modular takes 5 to 9999"),
        ("dates", 2, "dates takes 1 to 1 date"),
    ],
)
def test_a_difficulty_that_there_is_not(name, difficulty, words):
    with pytest.raises(ValueError, match=words):
        TASKS[name].check(difficulty)


# --------------------------------------------------------------------------- texts


def test_windows_of_a_text():
    text = "".join(random.Random(4).choices("abcde ", k=3_000))
    parts = text_parts(text, 8)
    assert all(window in text[:2_700] and len(window) == 8 for window in parts.training)
    assert all(window in text[2_700:] for window in parts.held_out)
    assert len(parts.held_out) == 300 // 8


def test_what_repeats_in_the_held_out_part_is_not_learned():
    refrain = "again and again and "
    text = "".join(random.Random(5).choices("abcdefgh", k=2_000)) + 30 * refrain
    parts = text_parts(text, 10)
    assert any(window in text[:-260] for window in parts.held_out)  # it stands in both parts of the text
    assert not {*parts.training} & {*parts.held_out}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the text is empty: there is nothing to learn"),
        ("aaaaaaa", "the text holds nothing but “a”"),
        ("a short text", "the text has 12 characters, too few for windows of 8"),
    ],
)
def test_a_text_that_nothing_can_be_learned_from(text, words):
    with pytest.raises(ValueError, match=words):
        text_parts(text, 8)
