"""The sentences of Play: every number in them is one of the view's."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from attention_explorer.panels.flow.box_text import Around, head_tooltip, neuron_name, ways_to_say
from attention_explorer.panels.flow.flow_sentences import block_sentence, box_sentence, input_sentence, output_sentence
from attention_explorer.panels.flow.model_scene import (
    LaneLabel,
    ModelScene,
    OutputGroup,
    OutputRow,
    Place,
    RecurrentScene,
    StackScene,
)
from attention_explorer.panels.flow.numbers import columns_of
from attention_explorer.panels.flow.player import play_steps, recurrent_steps
from attention_models.protocol.flow import (
    Expert,
    FeedForwardBox,
    HeadsBox,
    ModuleBox,
    Neuron,
    NormBox,
    OutputBox,
    RecurrentFlow,
    SumBox,
)
from tests.explorer.panels.flow.made import WORDS, block_view, boxes, flow_view

AROUND = Around("went", "to", (("attention", 2.0), ("feed_forward", 8.0)))
STACK = StackScene(flow_view().stacks[0], tuple(LaneLabel(word) for word in WORDS))


def said(number: int, view=None, head: int = 1) -> str:
    return box_sentence(view or block_view(), number, AROUND, WORDS, head)


def read(sentence: str) -> list[float]:
    """The numbers in a sentence."""
    return [float(text.replace("−", "-").replace(",", "")) for text in re.findall(r"−?\d[\d,]*\.?\d*", sentence)]


def test_a_norm_says_mean_deviation_and_its_largest_number():
    norm = boxes()[0]
    assert isinstance(norm, NormBox)
    mean, deviation, before, after, dimension = read(said(0))
    assert said(0).startswith("Layer norm: mean ")
    assert mean == pytest.approx(norm.mean, rel=1e-2)
    assert deviation == pytest.approx(norm.deviation, rel=1e-3)
    assert dimension == 5
    assert before == -3
    assert after == pytest.approx((before - mean) / deviation * 0.5 + 0.125, abs=2e-3)
    assert after == pytest.approx(float(norm.after[5]), abs=1e-3)


def test_an_rms_norm_has_no_mean_and_one_that_is_off_says_so():
    norm = boxes()[0]
    assert isinstance(norm, NormBox)
    view = block_view(made=(replace(norm, rms=True, off=True, mean=0.0), *boxes()[1:]))
    assert said(0, view).startswith("RMS norm: root mean square ")
    assert "mean 0" not in said(0, view)
    assert said(0, view).endswith("Its gain is switched off.")


def test_attention_that_is_switched_off_says_so():
    made = list(boxes())
    heads, output = made[4:6]
    assert isinstance(heads, HeadsBox)
    assert isinstance(output, OutputBox)
    made[4:6] = silent, written = replace(heads, off=(0, 1, 2, 3)), replace(output, off=True)
    view = block_view(made=tuple(made))
    assert "switched off" in said(4, view)
    assert "takes most" not in said(4, view)
    assert said(5, view) == "Attention is switched off: W_O adds nothing to the residual stream."
    assert ways_to_say(silent, AROUND)[1] == "switched off"
    assert ways_to_say(written, AROUND)[0].endswith("switched off")
    made[4:6] = one, _ = replace(heads, off=(1,)), output
    assert said(4, block_view(made=tuple(made))).endswith("0.600, but is switched off.")
    assert ways_to_say(one, AROUND)[0].endswith("; head 1 switched off")
    assert "nothing of it is written" in head_tooltip(one, output, 1, WORDS)
    assert list(columns_of(one, WORDS)[0].values) == [0, "1, off", 2, 3]


def test_projections_heads_and_output():
    assert said(1) == "Q: a matrix of 8 × 8 makes queries, what a token asks for: 8 numbers for “went”."
    assert said(4) == ("4 heads mix the values of 4 tokens for “went”: head 1 takes most from “Anna”, 0.600.")
    assert "head 3 takes most from “went”, 1.000" in said(4, head=-1)  # no head of this block: the one that gives most
    assert said(5) == (
        "The heads' outputs, side by side, times W_O (8 × 8): what attention writes, a vector of norm 2.000."
    )


def test_a_sum_adds_up():
    """Of the largest number of the stream: what was there, what was written, and what is there now."""
    dimension, before, written, after = read(said(6))
    assert (before, written, after) == (1.0, 0.5, 1.5)
    assert before + written == pytest.approx(after)
    assert dimension == 0
    assert "1.500 + 0.250 = 1.750" in said(9)
    scaled = boxes()[9]
    assert isinstance(scaled, SumBox)
    view = block_view(made=(*boxes()[:9], replace(scaled, factors=(1.0, 0.5), after=np.full(8, 1.625, np.float32))))
    assert "1.500 + 0.500 × 0.250 = 1.625" in said(9, view)


def test_a_feed_forward_network_names_its_largest_neuron():
    assert said(8) == (
        "Feed-forward network: 11 of 32 neurons are above 0; neuron 17 writes most, norm 2.250, which adds +0.750 to "
        "the logit of “to”; together they write norm 8.000."
    )
    network = boxes()[8]
    assert isinstance(network, FeedForwardBox)
    mixture = replace(network, experts=(Expert(index=3, share=0.75), Expert(index=1, share=0.25)), expert_count=8)
    assert "the router chose expert 3 (0.750) and expert 1 (0.250)" in said(8, block_view(made=(*boxes()[:8], mixture)))
    of_expert = replace(mixture, neurons=(Neuron(5, 2.0, 4.0, 0.5, 3),))
    assert "11 of their neurons are above 0; neuron 5 of expert 3 writes most, norm 4.000, which adds +0.500" in said(
        8, block_view(made=(*boxes()[:8], of_expert))
    )
    assert [neuron_name(neuron) for neuron in (*of_expert.neurons, *network.neurons[:1])] == ["3:5", "17"]
    off = block_view(made=(*boxes()[:8], replace(network, off=True)))
    assert said(8, off) == "The feed-forward network is switched off: it adds nothing."


def test_what_cannot_be_read_says_what_went_in_and_out():
    box = ModuleBox(
        module="h.5.strange",
        kind="Strange",
        part="other",
        reads=(-1,),
        before=None,
        after=np.ones(8, np.float32),
        norm_before=2.5,
        norm_after=1.25,
    )
    assert said(0, block_view(made=(box,))) == "Strange (strange): norm 2.500 in, norm 1.250 out."
    of_none = replace(box, after=np.zeros(0, np.float32), norm_after=None)
    assert said(0, block_view(made=(of_none,))) == "Strange (strange): gives no vector of a single token."


def test_blocks_the_input_and_what_is_said():
    assert block_sentence(STACK, Place(0, 2, 1)) == (
        "Block 2: attention writes 1.000, the feed-forward network writes 4.000; the norm of “and” goes from 8.000 to "
        "10.00."
    )
    assert input_sentence(STACK, 3) == (
        "“went” becomes a vector: the token's embedding, norm 0.400 plus the position's, norm 0.800. The residual "
        "stream begins with norm 1.200."
    )
    group = OutputGroup("next, after “went”", (OutputRow("to", 0.7, "70.0 %"), OutputRow("up", 0.1, "10.0 %")), 0, 3)
    assert output_sentence(group) == "Next, after “went”: “to”, 70.0 %, before “up”, 10.0 %."


def test_play_goes_up_through_the_model_and_through_the_selected_block_box_by_box():
    group = OutputGroup("next", (OutputRow("to", 0.7, "70.0 %"),), 0, 3)
    steps = play_steps(
        ModelScene((STACK,)), Place(0, 5, 3), [0], block_view(), AROUND, [group], {"attention": WORDS}, 1
    )
    kinds = [step.kind for step in steps]
    assert kinds == ["input", *["block"] * 5, *["box"] * 10, *["block"] * 3, "output"]
    assert [step.box for step in steps if step.kind == "box"] == list(range(10))
    assert [step.place.block for step in steps if step.kind == "block"] == list(range(8))
    assert all(step.sentence.endswith(".") for step in steps)
    without = play_steps(ModelScene((STACK,)), Place(0, 5, 3), [0], None, AROUND, [], {"attention": WORDS}, 1)
    assert [step.kind for step in without] == ["input", *["block"] * 8]


def test_a_recurrent_model_reads_and_then_writes():
    flow = RecurrentFlow(
        encoder=(np.array([1.0, 2.0], np.float32),),
        decoder=np.array([3.0, 4.0], np.float32),
        contexts=None,
        bottleneck=np.zeros(96, np.float32),
    )
    steps = recurrent_steps(RecurrentScene(("M", "a"), ("⟨start⟩", "0"), flow))
    assert [step.sentence for step in steps] == [
        "The encoder reads “M”, token 1 of 2: its state has norm 1.000 now.",
        "The encoder reads “a”, token 2 of 2: its state has norm 2.000 now. The decoder is told no more of the 2 "
        "tokens than one vector of 96 numbers.",
        "“⟨start⟩” goes into the decoder; its state has norm 3.000 now: “0” comes out.",
        "“0” goes into the decoder; its state has norm 4.000 now: the end.",
    ]
