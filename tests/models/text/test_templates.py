from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from attention_models.decoding.decode import decode
from attention_models.decoding.player import Player
from attention_models.engine.engine import Engine
from attention_models.files import helper_process
from attention_models.forward.model import Model
from attention_models.opening.describe import capabilities, description_of
from attention_models.opening.open import open_checkpoint
from attention_models.protocol.chat import MOST_TURNS, Chat, Turn
from attention_models.protocol.decoding import DecodeSettings, DecodeStepRequest, DecodeStepView, into_input
from attention_models.protocol.errors import InputError
from attention_models.protocol.loading import DescribeRequest, LoadRequest
from attention_models.protocol.prompt import Prompt
from attention_models.protocol.request import Failure
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.text import template_process
from attention_models.text.template_limits import Failed, Stopped
from attention_models.text.templates import render, turn_end
from tests.models.asking import ask, never
from tests.models.talking import CHATML, TOKENIZERS, save_talking
from tests.models.tiny import eager, eager_run, rig

Talking = Callable[..., Model]

SYSTEM, HI, HELLO = (
    Turn("system", "You are a cat."),
    Turn("user", "Tom went to the park."),
    Turn("assistant", "The dog"),
)
AGAIN = Turn("user", "  Anna gave the ball \n")


@pytest.fixture(scope="module")
def talking(tmp_path_factory: pytest.TempPathFactory) -> Talking:
    folders: dict[str, Path] = {}

    def model(kind: str) -> Model:
        if kind not in folders:
            folders[kind] = save_talking(kind, tmp_path_factory.mktemp(kind))
        return open_checkpoint(folders[kind])

    return model


# rendered by hand: (role, characters), "" for what the template writes
BY_HAND: dict[str, tuple[str, tuple[Turn, ...], list[tuple[str, str]]]] = {
    "chatml, a system of its own": (
        "chatml",
        (SYSTEM, HI, HELLO, AGAIN),
        [
            ("", "<|im_start|>system\n"),
            ("system", "You are a cat."),
            ("", "<|im_end|>\n<|im_start|>user\n"),
            ("user", "Tom went to the park."),
            ("", "<|im_end|>\n<|im_start|>assistant\n"),
            ("assistant", "The dog"),
            ("", "<|im_end|>\n<|im_start|>user\n"),
            ("user", "  Anna gave the ball \n"),
            ("", "<|im_end|>\n<|im_start|>assistant\n"),
        ],
    ),
    "chatml, the template's system": (
        "chatml",
        (HI,),
        [
            ("", "<|im_start|>system\nYou are a dog.<|im_end|>\n<|im_start|>user\n"),
            ("user", "Tom went to the park."),
            ("", "<|im_end|>\n<|im_start|>assistant\n"),
        ],
    ),
    "chatml, an open turn": (
        "chatml",
        (SYSTEM, HI, Turn("assistant", " The dog ")),
        [
            ("", "<|im_start|>system\n"),
            ("system", "You are a cat."),
            ("", "<|im_end|>\n<|im_start|>user\n"),
            ("user", "Tom went to the park."),
            ("", "<|im_end|>\n<|im_start|>assistant\n"),
            ("assistant", " The dog "),
        ],
    ),
    "llama-2": (
        "llama-2",
        (SYSTEM, HI, HELLO, AGAIN),
        [
            ("", "<s>[INST] <<SYS>>\n"),
            ("system", "You are a cat."),
            ("", "\n<</SYS>>\n\n"),
            ("user", "Tom went to the park."),
            ("", " [/INST] "),
            ("assistant", "The dog"),
            ("", " </s><s>[INST] "),
            ("user", "Anna gave the ball"),
            ("", " [/INST]"),
        ],
    ),
    "llama-2, an open turn": (
        "llama-2",
        (HI, HELLO),
        [
            ("", "<s>[INST] "),
            ("user", "Tom went to the park."),
            ("", " [/INST] "),
            ("assistant", "The dog"),
        ],
    ),
    "llama-2, an open turn that begins with the space": (
        "llama-2",
        (HI, Turn("assistant", " The dog")),
        [
            ("", "<s>[INST] "),
            ("user", "Tom went to the park."),
            ("", " [/INST]"),
            ("assistant", " The dog"),
        ],
    ),
    "gemma": (
        "gemma",
        (HI, HELLO, AGAIN),
        [
            ("", "<bos><start_of_turn>user\n"),
            ("user", "Tom went to the park."),
            ("", "<end_of_turn>\n<start_of_turn>model\n"),
            ("assistant", "The dog"),
            ("", "<end_of_turn>\n<start_of_turn>user\n"),
            ("user", "Anna gave the ball"),
            ("", "<end_of_turn>\n<start_of_turn>model\n"),
        ],
    ),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_tokens_and_roles_by_hand(talking: Talking, name: str) -> None:
    kind, turns, parts = BY_HAND[name]
    model = talking(kind)
    text = "".join(characters for _, characters in parts)
    said = [role for role, characters in parts for _ in characters]
    alone = model.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)

    tokens = model.encode(Chat(turns)).tokens

    assert render(model.tokenizer, Chat(turns)).text == text
    assert [token.id for token in tokens] == alone["input_ids"]
    assert all(token.text == text[token.start : token.end] for token in tokens)
    # the text covered, each character once, with no gap but white space that SentencePiece leaves to no token
    covered = [at for token in tokens for at in range(token.start, token.end)]
    assert len(covered) == len(set(covered))
    assert not "".join(c for at, c in enumerate(text) if at not in set(covered)).strip()
    for token in tokens:
        own = [said[at] for at in range(token.start, token.end)]
        if len(set(own)) == 1:
            assert token.role == own[0], token
        else:  # a token over the border belongs to who said most of it
            assert own.count(token.role) * 2 >= len(own), token
    names = {"<|im_start|>", "<|im_end|>", "<s>", "</s>", "<bos>", "<start_of_turn>", "<end_of_turn>"}
    assert all(token.special == (token.text in names) for token in tokens)
    assert sum(token.text in ("<s>", "<bos>") for token in tokens) == text.count("<s>") + text.count("<bos>")


def test_what_is_run_is_what_transformers_makes_of_it(talking: Talking) -> None:
    for kind in TOKENIZERS:
        model = talking(kind)
        chat = Chat((HI, HELLO, AGAIN))
        messages = [{"role": turn.role, "content": turn.text} for turn in chat]
        theirs = model.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)

        assert [token.id for token in model.encode(chat).tokens] == theirs
        assert [token.id for token in model.encode(messages).tokens] == theirs


def test_a_template_without_a_start_token_is_given_none(tmp_path: Path) -> None:
    """As TinyLlama's: its tokenizer puts <s> before a text, and its template writes none."""
    model = open_checkpoint(save_talking("llama-2", tmp_path, template=CHATML))
    messages = [{"role": "user", "content": HI.text}]
    theirs = model.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)

    assert [token.id for token in model.encode(Chat((HI,))).tokens] == theirs
    assert model.tokenizer.bos_token_id not in theirs


def test_attention_of_a_conversation_equals_eager(talking: Talking) -> None:
    from attention_models.forward.run import run

    model = talking("chatml")
    trace = run(model, [{"role": "user", "content": HI.text}])
    theirs = eager_run(model, Chat((HI,)))  # type: ignore[arg-type]
    ours = torch.from_numpy(trace.weights(trace.sites[1], head=2))

    assert (ours - theirs.attentions[1][0, 2]).abs().max() < 1e-5


@pytest.mark.parametrize("side", ["right", "left"])
def test_conversations_run_at_once_equal_eager_on_the_templates_own_batch(talking: Talking, side: str) -> None:
    from attention_models.forward.run import run

    model = talking("chatml")
    chats = [[{"role": "user", "content": HI.text}], [{"role": "user", "content": "Why?"}]]
    tokenizer = model.tokenizer
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    inputs = tokenizer.apply_chat_template(
        chats,
        add_generation_prompt=True,
        padding=True,
        return_dict=True,
        return_tensors="pt",
        tokenizer_kwargs={"padding_side": side},
    )
    with torch.no_grad():
        out = eager(model)(**inputs, output_attentions=True)
    for row, trace in enumerate(run(model, chats, padding=side)):  # type: ignore[call-overload]
        assert [token.id for token in trace.tokens] == inputs["input_ids"][row].tolist()
        real = [i for i, token in enumerate(trace.tokens) if not token.padding]
        theirs = out.attentions[1][row, 2]
        assert (torch.from_numpy(trace.weights(trace.sites[1], head=2)) - theirs)[
            real
        ].abs().max() < 2e-6  # both in float32


def test_names_of_special_tokens_in_a_turn_are_these_tokens(talking: Talking) -> None:
    model = talking("chatml")
    tokens = model.encode(Chat((Turn("user", "Tom <|im_end|> Anna"),))).tokens
    said = [token for token in tokens if token.role == "user"]

    assert [token.text for token in said if token.special] == ["<|im_end|>"]
    assert "".join(token.text for token in said) == "Tom <|im_end|> Anna"


def test_words_that_the_template_says_too_are_still_the_users(talking: Talking) -> None:
    model = talking("chatml")
    tokens = model.encode(Chat((Turn("user", "user"), Turn("assistant", "assistant"), Turn("user", "\n")))).tokens

    assert "".join(token.text for token in tokens if token.role == "user") == "user\n"
    assert "".join(token.text for token in tokens if token.role == "assistant") == "assistant"


def test_a_template_that_keeps_part_of_a_turn() -> None:
    tokenizer = TOKENIZERS["chatml"]()
    tokenizer.chat_template = (
        "{% for message in messages %}{% set words = message['content'] %}"
        "{% if '</think>' in words %}{% set words = words.split('</think>')[-1].lstrip() %}{% endif %}"
        "{{ '[' + words + ']' }}{% endfor %}"
    )
    rendered = render(tokenizer, Chat((HI, Turn("assistant", "hm </think> The dog"), Turn("user", "Why?"))))

    assert rendered.text == "[Tom went to the park.][The dog][Why?]"
    said = [(span.role, rendered.text[span.start : span.end]) for span in rendered.spans]
    assert said == [("user", "Tom went to the park."), ("assistant", "The dog"), ("user", "Why?")]


def test_a_template_that_rewrites_words_leaves_them_to_nobody() -> None:
    tokenizer = TOKENIZERS["chatml"]()
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] | upper }}|{% endfor %}"

    assert render(tokenizer, Chat((HI,))).spans == ()


@pytest.mark.parametrize(("kind", "end"), [("chatml", "<|im_end|>"), ("llama-2", "</s>"), ("gemma", "<end_of_turn>")])
def test_writing_ends_with_the_turn(talking: Talking, kind: str, end: str) -> None:
    model = talking(kind)
    chat = Chat((HI,))
    word, over = model.tokenizer.convert_tokens_to_ids(["o", end])
    assert turn_end(model.tokenizer).strip().startswith(end)

    def choose(ids: list[int]) -> dict[int, int]:
        return {len(ids) - 1: over if ids[-1] == word else word}

    steps = list(decode(rig(model, choose), chat, steps=5))

    assert [step.text for step in steps] == ["o", "o"]
    assert steps[-1].ended
    assert steps[-1].ids == (word, over)


def test_stepping_writes_the_assistants_turn(talking: Talking) -> None:
    model = talking("chatml")
    engine = Engine()
    ask(engine, LoadRequest(ticket=1, reference=model.info.folder))
    prompt: Prompt = Chat((HI,))
    for ticket in (2, 4):
        ran = ask(engine, ForwardRequest(inputs=RunInputs(prompt), ticket=ticket))
        assert isinstance(ran, Ran)
        assert ran.inputs.prompt == prompt
        stepped = ask(engine, into_input(ran.inputs))
        assert isinstance(stepped, DecodeStepView)
        prompt = stepped.whole
    assert isinstance(prompt, Chat)
    assert [turn.role for turn in prompt] == ["user", "assistant"]
    assert prompt.turns[0] == HI
    assert prompt.turns[1].text == list(decode(model, Chat((HI,)), steps=2))[-1].text


def test_the_player_writes_the_assistants_turn(talking: Talking) -> None:
    model = talking("gemma")
    said = list(decode(model, Chat((HI,)), steps=1))[-1]
    request = DecodeStepRequest(inputs=RunInputs(Chat((HI,))), settings=DecodeSettings(), steps=3, number=1)

    view = Player(model).step(request, never)

    assert view.ids == said.ids
    assert view.whole == Chat((HI, Turn("assistant", said.text)))


@pytest.mark.parametrize(
    ("kind", "turns", "words"),
    [
        ("gemma", (SYSTEM, HI), "System role not supported"),
        ("gemma", (HI, AGAIN), "Conversation roles must alternate"),
        ("llama-2", (SYSTEM, HI, AGAIN), "Conversation roles must alternate"),
        ("gemma", (HI, HELLO, HELLO), "Conversation roles must alternate"),
        ("chatml", (), "Add a turn"),
        ("chatml", (Turn("user", " \n"),), "Type something"),
    ],
)
def test_conversations_that_are_refused(talking: Talking, kind: str, turns: tuple[Turn, ...], words: str) -> None:
    engine = Engine()
    ask(engine, LoadRequest(ticket=1, reference=talking(kind).info.folder))
    failure = ask(engine, ForwardRequest(inputs=RunInputs(Chat(turns)), ticket=2))

    assert isinstance(failure, Failure)
    assert words in failure.sentence


def test_too_long_a_conversation(talking: Talking) -> None:
    with pytest.raises(InputError, match=r"takes 160\. Nothing was cut"):
        talking("chatml").encode(Chat((Turn("user", HI.text * 30),)))


def test_a_model_without_a_template(story_gpt: Model) -> None:
    assert not story_gpt.info.chat
    with pytest.raises(InputError, match="has no chat template"):
        story_gpt.encode(Chat((HI,)))


def test_a_model_with_a_template_says_so(talking: Talking) -> None:
    info = talking("gemma").info
    assert info.chat
    assert "Conversation" in [capability.name for capability in capabilities(info)]
    described = description_of(DescribeRequest(reference=info.folder)).info
    assert described is not None
    assert described.chat


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "did not end within"),
        ("{% for i in range(9999) %}{{ 'x' * 9999 }}{% endfor %}", "wrote more than 4,000,000"),
        ("{{ 'x' * 3000000000 }}", "more than 1 GB of memory|did not end within"),
        ("{{ 'x'.center(3000000000) }}", "more than 1 GB of memory|did not end within"),
        ("{{ ('x' * 40000000) | wordwrap(1) }}", "more than 1 GB of memory|did not end within"),
        ("{{ 9 ** (9 ** 9) }}", "did not end within"),
        ("{{ messages[9].content.nothing() }}", "fails on this conversation"),
        ("{{ ''.__class__.__mro__ }}", "fails on this conversation"),
        ("{% for %}", "fails on this conversation"),
        ("{{ 1 / 0 }}", "fails on this conversation"),
        ("{{ messages.append(1) }}", "fails on this conversation"),
        ("{{ '' }}", "leaves nothing"),
    ],
)
def test_templates_that_fail(monkeypatch: pytest.MonkeyPatch, template: str, words: str) -> None:
    monkeypatch.setattr(template_process, "MOST_SECONDS", 0.3 if "end" in words else 60)
    tokenizer = TOKENIZERS["chatml"]()
    tokenizer.chat_template = template
    with pytest.raises(InputError, match=words):
        render(tokenizer, Chat((HI,)), "Tiny")


def test_a_template_is_rendered_in_a_process_of_its_own_that_is_there_again_after_it_was_ended() -> None:
    process = template_process.TemplateProcess()
    turns = [{"role": "user", "content": "naïve \ud800 \n ☃"}]
    try:
        for _ in range(2):
            assert process.render("{{ messages[0].content }}", turns, True, {}) == turns[0]["content"]
            with pytest.raises(Stopped):
                process.render("{{ 'x' * 3000000000 }}", turns, True, {})
        process.close()
        assert (
            process.render("{{ eos_token }}{{ add_generation_prompt }}", turns, True, {"eos_token": "</s>"})
            == "</s>True"
        )
    finally:
        process.close()


@pytest.mark.skipif(os.name != "posix", reason="the stand-in for a frozen program is a shell script")
def test_a_frozen_program_starts_itself_to_render(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, root = tmp_path / "attention explorer", Path(template_process.__file__).parents[2]
    program.write_text(f'#!/bin/sh\ncd "{root}" && exec "{sys.executable}" -m attention_explorer "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    process = template_process.TemplateProcess()
    try:
        assert process.render("{{ messages[0].content }}!", [{"role": "user", "content": "Hi"}], True, {}) == "Hi!"
    finally:
        process.close()


def test_a_template_ends_when_the_program_that_asked_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_process, "MOST_SECONDS", 0.2)
    monkeypatch.setattr(helper_process._Told, "_check", lambda _: None)  # as if nobody looked
    process = template_process.TemplateProcess()
    with pytest.raises(Failed, match="ended"):
        process.render("{{ 9 ** (9 ** 9) }}", [], True, {})
    process.close()


def test_a_python_that_can_not_be_started_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with pytest.raises(Failed, match="does not answer: No such file"):
        template_process.TemplateProcess().render("x", [], True, {})


def test_messages_that_are_none() -> None:
    with pytest.raises(InputError, match="Turn 1 is by 'tool'"):
        Chat.of([{"role": "tool", "content": "x"}])
    with pytest.raises(InputError, match="Turn 2 has no text"):
        Chat.of([{"role": "user", "content": "x"}, {"role": "user"}])
    with pytest.raises(InputError, match=f"{MOST_TURNS} are taken at most"):
        Chat.of([{"role": "user", "content": "x"}] * (MOST_TURNS + 1))
