"""The (i) of every panel, in five shipped checkpoints: each number beside transformers' eager model, or NumPy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from PySide6.QtWidgets import QApplication

from attention_explorer.panels.cell.panel import CellPanel
from attention_explorer.panels.decoding.panel import DecodingPanel
from attention_explorer.panels.flow.panel import FlowPanel
from attention_explorer.panels.lookup.panel import LookupPanel
from attention_explorer.panels.positions.panel import PositionsPanel
from attention_explorer.panels.registry import TITLES
from attention_explorer.panels.variance.panel import VariancePanel
from attention_explorer.session.intents import PutIntervention, SetView
from attention_explorer.widgets.number_text import percent_text, value_text
from attention_explorer.window.window import MainWindow
from attention_models.protocol.flow import FlowView
from attention_models.protocol.interventions import Scale
from attention_models.protocol.values import site_tokens
from tests.explorer.independent import Facts, bits_of, facts_of, softmax
from tests.explorer.real_window import opened_window, panel_of, settle, wait_until

TEXTS = {
    "story-gpt": "Tom and Anna went to the park. Anna gave the ball to",
    "story-bert": "Tom and Anna [MASK] to the park.",
    "en-es": "The black cat is sleeping on the table.",
    "recurrent-en-es-bahdanau": "The black cat is sleeping.",
    "vit-cifar10": "",
}
TRANSFORMERS = ("story-gpt", "story-bert", "en-es", "vit-cifar10")


@dataclass
class Shown:
    """A window, and what is so of what it shows."""

    name: str
    window: MainWindow
    facts: Facts

    def about(self, panel: str) -> str:
        """What the (i) of a panel says once the panel shows the run."""
        docks = self.window.dock_host
        docks.docks[panel].show()
        docks.raise_panel(panel)
        wait_until(lambda: next(p for p in self.window.panels if p.name == panel).isVisible())
        settle(self.window)
        shown = next(p for p in self.window.panels if p.name == panel)
        return " ".join(shown.about(self.window.session.state).sentences)

    @property
    def row(self) -> np.ndarray:
        """The selected head's row, (keys,) float64."""
        chosen, site = self.window.session.state.selection, self.window.session.state.site
        assert site is not None
        row: np.ndarray = self.facts.weights[site.ref][chosen.head, chosen.query].astype(np.float64)
        return row

    @property
    def words(self) -> tuple[list[str], list[str]]:
        """What queries and keys are called."""
        state = self.window.session.state
        assert state.ran is not None
        assert state.site is not None
        queries, keys = ([token.word for token in side] for side in site_tokens(state.ran, state.site))
        if state.site.stack == "cross":  # a row is named by what went in and what it wrote
            queries = [*(f"{word} → {wrote}" for word, wrote in pairwise(queries)), queries[-1]]
        return queries, keys

    @property
    def visible(self) -> int:
        state = self.window.session.state
        assert state.site is not None
        return state.selection.query + 1 if state.site.causal else state.site.keys

    @property
    def answer(self) -> tuple[int, np.ndarray]:
        """Where Next reads what the model says, and the logits there."""
        state = self.window.session.state
        assert state.ran is not None
        if self.name == "vit-cifar10":
            return 0, self.facts.logits
        position = state.ran.masks[0] if state.ran.masks else state.selection.query
        if state.site is not None and state.site.stack == "encoder" and not state.ran.masks:
            position = len(state.ran.tokens) - 1
        return position, self.facts.logits[position]


OTHERS = [pytest.param(name, marks=pytest.mark.full) for name in TEXTS if name != "story-gpt"]


@pytest.fixture(scope="module", params=["story-gpt", *OTHERS])
def shown(request: pytest.FixtureRequest, qapp: QApplication) -> Iterator[Shown]:
    with opened_window(request.param, TEXTS[request.param]) as window:
        state = window.session.state
        assert state.ran is not None
        yield Shown(request.param, window, facts_of(request.param, state.ran, state.document.picture))


def one_of(values: list[float], text: str, form: str) -> None:
    """A float32 of the model may round otherwise than a float64 beside it: to the last digit, either is right."""
    said = [form.format(value_text(value)) for value in values]
    assert any(each in text for each in said), (said, text)


def near(value: float, text: str, form: str) -> None:
    """`form` with the value as it is written, in `text`; it may be one float32 rounding away."""
    one_of([value, value * (1 + 2e-6), value * (1 - 2e-6)], text, form)


@pytest.mark.full
def test_every_panel_of_the_registry_says_three_or_four_sentences(shown):
    for name in TITLES:
        panel = next(p for p in shown.window.panels if p.name == name)
        assert shown.about(name)
        about = panel.about(shown.window.session.state)
        suits = panel.suits(shown.window.session.state.results.loaded.info)
        assert 2 <= len(about.sentences) <= 4, (name, about)
        assert about.to_try.startswith("Try: ") or not suits, name
        assert all(sentence.rstrip().endswith((".", "?")) for sentence in about.sentences), about
        assert not any("None" in sentence or "nan" in sentence.split() for sentence in about.sentences)


def test_head(shown):
    said, row, (queries, keys) = shown.about("map"), shown.row, shown.words
    chosen = shown.window.session.state.selection
    best = int(row.argmax())
    near(row[best], said, f"The row of “{queries[chosen.query]}” puts {{}} on “{keys[best]}”")
    if best != chosen.key:
        near(row[chosen.key], said, f"“{keys[chosen.key]}”, which is framed, has {{}}.")
    assert f" of {shown.visible} keys that" in said
    near(bits_of(row), said, f"is {{}} bits of {value_text(math.log2(shown.visible))} possible")


def test_all_heads(shown):
    said, state = shown.about("heads"), shown.window.session.state
    stack = state.selection.site.stack
    sites = [(ref, weights) for ref, weights in shown.facts.weights.items() if ref.stack == stack]
    assert f"{sum(len(weights) for _, weights in sites)} head" in said
    assert f"{len(sites)} layer" in said
    assert f"{len(sites[0][1])} across" in said
    # of rows with a choice: a first row that sees itself alone has 1 in every head
    chooses = {ref: weights[:, (weights[0] > 0).sum(axis=1) > 1] for ref, weights in sites}
    near(max(float(weights.max()) for weights in chooses.values()), said, "largest weight is {}, in layer")
    if len(sites) > 1:
        near(float(chooses[state.selection.site][state.selection.head].max()), said, "reaches {}.")


def test_next(shown):
    said, (_, logits) = shown.about("next"), shown.answer
    shares = softmax(logits)
    best = int(shares.argmax())
    assert f": {percent_text(shares[best])}, from a logit of {value_text(float(logits[best]))}." in said
    assert f" likeliest of {len(logits):,} " in said
    assert f"The 10 that are listed have {percent_text(np.sort(shares)[-10:].sum())} together." in said
    bits = bits_of(shares)
    assert f"is {bits:.2f} bits of {math.log2(len(logits)):.2f} possible" in said
    near(2**bits, said, "an even choice among {}.")


@pytest.mark.parametrize("unit", ["bits", "nats"])
def test_every_entropy_and_loss_follows_the_unit(shown, unit):
    session = shown.window.session
    session.dispatch(SetView("unit", unit))
    try:
        size = 1.0 if unit == "bits" else math.log(2)
        row, (_, logits) = shown.row, shown.answer
        near(
            size * bits_of(row), shown.about("map"), f"is {{}} {unit} of {value_text(size * math.log2(shown.visible))}"
        )
        assert f"is {size * bits_of(softmax(logits)):.2f} {unit} of " in shown.about("next")
        for name in TITLES:
            other = "nats" if unit == "bits" else "bits"
            assert f" {other}" not in shown.about(name), name
    finally:
        session.dispatch(SetView("unit", "bits"))


def test_flow(shown):
    said, state = shown.about("flow"), shown.window.session.state
    if shown.name == "recurrent-en-es-bahdanau":
        states = np.array(shown.facts.module.states)
        near(float(np.linalg.norm(states[state.selection.query])), said, "its state has norm {} now")
        assert f"Here {len(state.ran.source)} tokens of the source" in said
        return
    stack = "decoder" if shown.name in ("story-gpt", "en-es") else "encoder"
    streams, layer, query = shown.facts.streams[stack], state.site.layer, state.selection.query
    flow = state.results.of(FlowView)
    block = next(each for each in flow.stacks if each.stack == stack).blocks[layer]
    norms = [float(np.linalg.norm(streams[i][query].astype(np.float64))) for i in (layer, layer + 1)]
    if layer + 1 < len(streams) - 1 or shown.name in ("story-bert", "en-es"):
        near(norms[1], said, "to {}.")  # the last one of transformers is behind the final norm, where there is one
    near(norms[0], said, "goes from {} to ")
    assert f"{sum(len(each.blocks) for each in flow.stacks)} blocks." in said
    for written in block.written:
        # BERT's module adds the stream and normalises: what it adds is the matrix in it
        names = [f"{written.module}{inside}" for inside in (".output.dense", ".dense", "")]
        output = next(shown.facts.outputs[name] for name in names if name in shown.facts.outputs)
        near(float(np.linalg.norm(output[query].astype(np.float64))), said, "writes {}")
    best = softmax(shown.answer[1]).max()
    assert percent_text(best) in said


def test_flow_s_matrices(shown):
    if shown.name not in TRANSFORMERS:
        pytest.skip("a recurrent model's attention is no product of matrices")
    session = shown.window.session
    session.dispatch(SetView("distance", "attention"))
    try:
        said = shown.about("flow")
        q, k = query_and_key(shown)
        near(float(q @ k), said, "q · k is {}, the score")
        near(shown.row[session.state.selection.key], said, "the weight {}.")
    finally:
        session.dispatch(SetView("distance", "model"))
        settle(shown.window)
    assert panel_of(shown.window, FlowPanel).body.pages.currentIndex() == 1


def query_and_key(shown: Shown) -> tuple[np.ndarray, np.ndarray]:
    """Of the selected cell, (head_dim,) each in float64, from the eager model's own matrices."""
    state = shown.window.session.state
    site, chosen = state.site, state.selection
    assert site is not None
    part = slice(chosen.head * site.head_dim, (chosen.head + 1) * site.head_dim)
    q, k = (shown.facts.part(site.module, which)[:, part].astype(np.float64) for which in "qk")
    return q[chosen.query], k[chosen.key]


def test_cell(shown):
    said, state = shown.about("cell"), shown.window.session.state
    query, key = state.selection.query, state.selection.key
    near(shown.row[key], said, "softmax makes a weight of {} of it")
    if shown.facts.scores is not None:
        near(float(shown.facts.scores[query, key]), said, "The score e is {}, the sum of 192 products")
        return
    q, k = query_and_key(shown)
    near(float(q @ k), said, f"q · k is {{}}, the sum of {len(q)} products")
    near(float(q @ k) / math.sqrt(len(q)), said, "it is {}, and softmax")
    part = slice(state.selection.head * len(q), (state.selection.head + 1) * len(q))
    v = shown.facts.part(state.site.module, "v")[:, part].astype(np.float64)
    near(float(np.linalg.norm(v[key])), said, "a vector of length {} is read")
    near(float(shown.row[key] * np.linalg.norm(v[key])), said, "is read: {} of the head's")
    near(float(np.linalg.norm(shown.row @ v)), said, "of the head's {}")
    drawn = [step.formula for step in panel_of(shown.window, CellPanel).steps.steps]
    if "directly" in said:  # its own tests hold the drawn number against finite differences
        effect = said.rsplit("” by ", 1)[1].removesuffix(" directly.")
        assert any(effect in formula for formula in drawn), (effect, drawn)


def test_masks(shown):
    said = shown.about("masks")
    if shown.name not in TRANSFORMERS:
        assert "recurrent model" in said
        return
    row, (_, keys) = shown.row, shown.words
    near(bits_of(row), said, "an entropy of {} bits")
    near(float(row.max()), said, f"{{}} on “{keys[int(row.argmax())]}” at most")
    if shown.name == "story-gpt":
        ran = shown.window.session.state.ran
        shares = softmax(shown.facts.logits[:-1])
        loss = -np.mean([math.log2(shares[i, token.id]) for i, token in enumerate(ran.tokens[1:])])
        assert f"is {loss:.3f} bits." in said


def test_masks_before_and_after(shown):
    if shown.name != "story-gpt":
        pytest.skip("one model is enough: the comparison itself has its own tests")
    session, row = shown.window.session, shown.row
    site, head = session.state.selection.site, session.state.selection.head
    session.dispatch(PutIntervention(Scale(0, site=site, head=head)))
    settle(shown.window)
    try:
        said = shown.about("masks")
        near(
            bits_of(row),
            said,
            "before, " + value_text(float(row.max())) + " on “⟨start⟩” at most and an entropy of {} bits",
        )
        assert f"an entropy of {value_text(math.log2(shown.visible))} bits." in said  # all weigh the same
        assert "Now 1 change act" in said or "1 change acts" in said
    finally:
        session.undo()
        settle(shown.window)


def test_align(shown):
    said, row = shown.about("alignment"), shown.row
    if shown.name not in ("en-es", "recurrent-en-es-bahdanau"):
        assert "no attention from a target to a source" in said
        return
    state, (_, keys) = shown.window.session.state, shown.words
    best = int(row.argmax())
    assert f"{100 * row[best]:.0f} % on “{keys[best]}”" in said
    written = state.ran.tokens[state.selection.query + 1]
    likely = softmax(shown.facts.logits[state.selection.query])[written.id]
    assert f"It was {percent_text(likely)} likely." in said
    assert f"{len(state.ran.tokens)} tokens of the target over {len(state.ran.source)} tokens of the source" in said


def test_positions(shown):
    panel = panel_of(shown.window, PositionsPanel)
    said = shown.about("positions")
    if shown.name == "vit-cifar10":
        table = shown.facts.module.vit.embeddings.position_embeddings[0, 1:].detach().double().numpy()
        unit = table / np.linalg.norm(table, axis=1, keepdims=True)
        near(float((unit @ unit.T).min()), said, "The least alike two of them have {},")
        assert "8 × 8 patches" in said
        return
    assert f"from {2 * math.pi:.2f} positions a round to {2 * math.pi * 10_000 ** (62 / 64):,.0f}" in said
    assert "64 numbers a position" in said
    if shown.name == "recurrent-en-es-bahdanau":
        return
    panel.show_page(1)
    try:
        said, state = shown.about("positions"), shown.window.session.state
        assert f"stands at position {state.selection.query} of " in said
        table = position_table(shown).astype(np.float64)
        s = np.linalg.svd(table - table.mean(axis=0), compute_uv=False) ** 2
        assert f"hold {', '.join(f'{100 * share:.0f} %' for share in s[:3] / s.sum())} of what" in said
        assert f" of {len(table):,} that there are" in said
    finally:
        panel.show_page(0)


def position_table(shown: Shown) -> np.ndarray:
    """The table that is added to the tokens of the stack that is looked at."""
    module = shown.facts.module
    tables = {
        "story-gpt": lambda: module.transformer.wpe.weight,
        "story-bert": lambda: module.bert.embeddings.position_embeddings.weight,
        "en-es": lambda: module.model.decoder.embed_positions.weight,
    }
    table: np.ndarray = tables[shown.name]().detach().numpy()
    return table


def test_lookup(shown):
    panel = panel_of(shown.window, LookupPanel)
    prices = np.array([1.2, 0.8, 3.5, 0.5])
    panel.go_to(1)
    said = shown.about("lookup")
    arrows, query = np.array([(1.35, 1.05), (-1.0, 1.3), (1.2, -0.95), (-1.2, -0.8)]), np.array([1.3, 0.4])
    weights = softmax(arrows @ query)
    assert f"“apple” scores {float(arrows[0] @ query):.2f} and gets {100 * weights[0]:.0f} % of the weight" in said
    assert f"the answer is {float(weights @ prices):.2f}." in said
    panel.go_to(2)
    said, row, (queries, keys) = shown.about("lookup"), shown.row, shown.words
    chosen = shown.window.session.state.selection
    assert f"looks up “{queries[chosen.query]}”: {100 * row[chosen.key]:.1f} % of its answer comes from" in said
    assert f"“{keys[chosen.key]}”" in said
    panel.go_to(0)
    assert "You look up “grapes”, which is no key" in shown.about("lookup")


def test_variance(shown):
    panel = panel_of(shown.window, VariancePanel)
    said = shown.about("variance")
    d = int(panel.at.text().removeprefix("d = ").replace(",", ""))
    assert f"At d = {d}" in said
    assert f"the law says {value_text(float(d))}." in said  # m is 1
    assert f"by √{d}" in said
    rng = np.random.default_rng(1)  # other draws than those on screen: the same up to chance
    q, k = rng.standard_normal((64, d)), rng.standard_normal((64, 32, d))
    scores = np.einsum("bd,bkd->bk", q, k)
    plain, scaled = softmax(scores), softmax(scores / math.sqrt(d))
    figures = said.split("The largest weight of a row is ")[1].split(" there, and ")
    assert float(figures[0]) == pytest.approx(plain.max(axis=1).mean(), abs=0.1)
    assert float(figures[1].split(" after")[0]) == pytest.approx(scaled.max(axis=1).mean(), abs=0.05)
    if shown.name in TRANSFORMERS:
        q_k = head_products(shown)
        near(float(q_k.var()), said, "q·k has variance {} (standard")
        assert f"{q_k.size:,} allowed cells" in said


def head_products(shown: Shown) -> np.ndarray:
    """q . k of every cell of the selected head that its mask allows."""
    state = shown.window.session.state
    site, head = state.site, state.selection.head
    assert site is not None
    part = slice(head * site.head_dim, (head + 1) * site.head_dim)
    q, k = (shown.facts.part(site.module, which)[:, part].astype(np.float64) for which in "qk")
    products = q @ k.T
    return products[np.tril_indices(len(products))] if site.causal else products.ravel()


def test_hidden(shown):
    said, state = shown.about("recurrent"), shown.window.session.state
    if shown.name in TRANSFORMERS:
        assert "is a transformer" in said
        return
    row, (_, keys) = shown.row, shown.words
    near(float(row.max()), said, f"It looks most at “{keys[int(row.argmax())]}” ({{}}).")
    near(bits_of(row), said, f"is {{}} bits of {value_text(math.log2(len(row)))} possible")
    assert f"Step {state.selection.query + 1} of {len(state.ran.tokens)}" in said


def test_decode(shown):
    panel = panel_of(shown.window, DecodingPanel)
    said = shown.about("decoding")
    if shown.name == "vit-cifar10":
        assert "writes nothing" in said
        return
    assert f"Nothing is {'filled' if shown.name == 'story-bert' else 'written'} yet." in said
    if shown.name == "en-es":
        panel.view.knobs.strategy_buttons.button(0).click()  # greedy: it is made for beams
    before, masks = shown.window.session.state.document.writings, shown.window.session.state.ran.masks
    panel.view.transport.step.emit()
    wait_until(lambda: panel.player.pending is None and panel.player.at > 0)
    said = shown.about("decoding")
    position = masks[0] if masks else len(shown.facts.logits) - 1  # before the step
    if shown.name in ("en-es", "recurrent-en-es-bahdanau"):
        position = 0  # it writes from its start token on
    shares = softmax(shown.facts.logits[position])
    assert "1 step of this text is in view." in said
    assert f"with {percent_text(shares.max())}; the 10 candidates" in said
    assert f"have {percent_text(np.sort(shares)[-10:].sum())} together." in said
    assert before == ()
    shown.window.session.undo()


@pytest.mark.full
def test_what_to_try_is_there_to_be_tried(shown):
    """No other head is offered where there is one, and who fills masks is not said to write on."""
    state = shown.window.session.state
    loaded, ran = state.results.loaded, state.ran
    assert loaded is not None
    assert ran is not None
    tried = {panel.name: panel.about(state).to_try for panel in shown.window.panels}
    heads = sum(site.heads for site in ran.sites)
    assert ("next head" in tried["map"]) == (heads > 1)
    crossing = sum(site.heads for site in ran.sites if site.stack == "cross")
    if crossing:
        assert shown.about("alignment")
        assert ("All heads" in tried["alignment"]) == (crossing > 1)
    said = shown.about("decoding")
    fills = loaded.info.family == "masked"
    assert ("fills one mask a step" in said) == fills
    assert not (fills and "follows several texts" in said)
