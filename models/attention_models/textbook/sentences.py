"""Sentences made of a few frequent words: in English with their Spanish, and with what they feel about something.

Written for this program, as no collection of sentence pairs may come along with it. A sentence is put together by a
small grammar, so that most of what is held out is a combination that was never read of words that were.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

# --------------------------------------------------------------------------- English and Spanish


class _Noun(NamedTuple):
    english: str
    spanish: str
    feminine: bool
    english_plural: str
    spanish_plural: str


class _Verb(NamedTuple):
    english: str
    third: str  # he, she
    spanish: tuple[str, str, str, str, str]  # yo, tú, él and ella, nosotros, ellos


def _nouns(listed: str) -> tuple[_Noun, ...]:
    """Lines of English, Spanish, gender and both plurals; the article is the Spanish dictionary's."""
    found = []
    for line in listed.strip().splitlines():
        english, article, spanish, english_plural, spanish_plural = line.split()
        found.append(_Noun(english, spanish, article == "la", english_plural, spanish_plural))
    return tuple(found)


_THINGS = _nouns(
    """
    apple la manzana apples manzanas
    book el libro books libros
    car el coche cars coches
    chair la silla chairs sillas
    door la puerta doors puertas
    flower la flor flowers flores
    hat el sombrero hats sombreros
    house la casa houses casas
    letter la carta letters cartas
    lamp la lámpara lamps lámparas
    shoe el zapato shoes zapatos
    table la mesa tables mesas
    watch el reloj watches relojes
    boat el barco boats barcos
    """
)
_WHO = _nouns(
    """
    boy el niño boys niños
    girl la niña girls niñas
    doctor el médico doctors médicos
    friend el amigo friends amigos
    sister la hermana sisters hermanas
    woman la mujer women mujeres
    """
)
_VERBS = tuple(
    _Verb(english, third, (yo, tu, el, nosotros, ellos))
    for english, third, yo, tu, el, nosotros, ellos in (
        line.split()
        for line in """
        buy buys compro compras compra compramos compran
        draw draws dibujo dibujas dibuja dibujamos dibujan
        find finds encuentro encuentras encuentra encontramos encuentran
        have has tengo tienes tiene tenemos tienen
        need needs necesito necesitas necesita necesitamos necesitan
        paint paints pinto pintas pinta pintamos pintan
        see sees veo ves ve vemos ven
        sell sells vendo vendes vende vendemos venden
        want wants quiero quieres quiere queremos quieren
        wash washes lavo lavas lava lavamos lavan
        """.strip().splitlines()
    )
)
_PRONOUNS = (
    ("i", "", 0),  # the Spanish verb says who: these three are left out
    ("you", "", 1),
    ("we", "", 3),
    ("he", "él", 2),
    ("she", "ella", 2),
    ("they", "ellos", 4),
)
_COLOURS = tuple(
    tuple(line.split())  # masculine, feminine, and both plurals
    for line in """
    red rojo roja rojos rojas
    white blanco blanca blancos blancas
    black negro negra negros negras
    yellow amarillo amarilla amarillos amarillas
    green verde verde verdes verdes
    blue azul azul azules azules
    new nuevo nueva nuevos nuevas
    small pequeño pequeña pequeños pequeñas
    """.strip().splitlines()
)
_THE = ("el", "la", "los", "las")
_MY = ("mi", "mi", "mis", "mis")
_TWO = ("", "", "dos", "dos")
_ONE = ("un", "una", "", "")


def translated(rng: random.Random, difficulty: int) -> tuple[str, str]:
    """("she does not buy the red house", "ella no compra la casa roja").

    Of difficulty 1 are a pronoun, a verb and a thing; with 2 come colours and "not", with 3 other subjects.
    """
    if difficulty >= 3 and rng.random() < 0.5:
        who, plural = rng.choice(_WHO), rng.random() < 0.3
        english, spanish = _phrase(rng, who, "the", _THE, plural, coloured=False)
        person = 4 if plural else 2
    else:
        english, spanish, person = rng.choice(_PRONOUNS)
    verb, is_third = rng.choice(_VERBS), person == 2
    negated = difficulty >= 2 and rng.random() < 0.25
    done, no = verb.third if is_third else verb.english, ""
    if negated:
        done, no = f"{'does' if is_third else 'do'} not {verb.english}", "no "
    article, articles = rng.choice((("the", _THE), ("my", _MY), ("two", _TWO), ("one", _ONE)))
    plural = article == "two" or (article != "one" and rng.random() < 0.4)
    thing = _phrase(rng, rng.choice(_THINGS), article, articles, plural, difficulty >= 2 and rng.random() < 0.6)
    return f"{english} {done} {thing[0]}", f"{spanish} {no}{verb.spanish[person]} {thing[1]}".strip()


def _phrase(
    rng: random.Random, noun: _Noun, article: str, articles: Sequence[str], plural: bool, coloured: bool
) -> tuple[str, str]:
    """("the red apples", "las manzanas rojas"): in Spanish the article and the adjective agree with the noun."""
    place = 2 * plural + noun.feminine
    english = [article, noun.english_plural if plural else noun.english]
    spanish = [articles[place], noun.spanish_plural if plural else noun.spanish]
    if coloured:
        colour = rng.choice(_COLOURS)
        english.insert(1, colour[0])
        spanish.append(colour[1 + place])
    return " ".join(english), " ".join(spanish)


def _words_of_translation() -> tuple[str, ...]:
    nouns = {word for noun in (*_THINGS, *_WHO) for word in (noun[0], noun[1], noun[3], noun[4])}
    verbs = {word for verb in _VERBS for word in (verb.english, verb.third, *verb.spanish)}
    adjectives = {word for colour in _COLOURS for word in colour}
    pronouns = {word for english, spanish, _ in _PRONOUNS for word in (english, spanish)}
    articles = {"the", "my", "two", "one", *_THE, *_MY, *_TWO, *_ONE}
    return tuple(sorted((nouns | verbs | adjectives | pronouns | articles | {"do", "does", "not", "no"}) - {""}))


TRANSLATION_WORDS = _words_of_translation()
"""Every word of both languages."""

# --------------------------------------------------------------------------- what a sentence feels

_GOOD = ("good", "great", "lovely", "funny", "clever", "warm", "bright", "gentle", "exciting", "wonderful")
_BAD = ("bad", "awful", "boring", "slow", "silly", "cold", "ugly", "rude", "tiring", "terrible")
_OF_WHAT = ("film", "book", "song", "story", "meal", "room", "trip", "game", "play", "ending", "music", "cook")
_HOW = ("", "", "very", "really", "quite")
POSITIVE, NEGATIVE = "positive", "negative"


def felt(rng: random.Random, difficulty: int) -> tuple[str, str]:
    """("the film was not good but the music was lovely", "positive").

    "not" turns what follows it round, and after "but" comes what counts. `difficulty` is how many clauses there are.
    """
    feelings = [rng.random() < 0.5]
    joined = [_clause(rng, feelings[0])]
    for _ in range(difficulty - 1):
        turns = rng.random() < 0.5
        feelings.append(feelings[-1] != turns)
        joined.append(("but " if turns else "and ") + _clause(rng, feelings[-1]))
    return " ".join(joined), POSITIVE if feelings[-1] else NEGATIVE


def _clause(rng: random.Random, positive: bool) -> str:
    negated = rng.random() < 0.35
    adjective = rng.choice(_GOOD if positive != negated else _BAD)
    words = ("the", rng.choice(_OF_WHAT), "was", "not" if negated else "", rng.choice(_HOW), adjective)
    return " ".join(word for word in words if word)


FELT_WORDS = tuple(
    sorted(({*_GOOD, *_BAD, *_OF_WHAT, *_HOW} | {"the", "was", "not", "and", "but", POSITIVE, NEGATIVE}) - {""})
)
"""Every word of them, and of their answers."""

# --------------------------------------------------------------------------- a text


def english_text(characters: int, seed: int) -> str:
    """English sentences of the grammar one after another, at least so many characters: to be read letter by letter."""
    rng = random.Random(seed)
    text = ""
    while len(text) < characters:
        text += translated(rng, 3)[0].capitalize() + ". "
    return text
