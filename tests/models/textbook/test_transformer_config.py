"""What no model can be made of is refused with a sentence that names the switch."""

from __future__ import annotations

import pytest

from attention_models.textbook.transformer_config import CHOICES, SWITCHES, TransformerConfig, as_switch


@pytest.mark.parametrize(
    ("switches", "words"),
    [
        ({"width": 64, "heads": 5}, "heads is 5, which does not divide the width of 64"),
        ({"heads": 4, "key_heads": 3}, "key_heads is 3, which does not divide the 4 heads"),
        ({"width": 20, "heads": 4, "positions": "rope"}, "positions=rope turns .* 5 each, an odd number"),
        ({"score": "additive", "positions": "rope"}, "positions=rope changes the product .* score=additive has none"),
        ({"score": "additive", "positions": "t5"}, "positions=t5 changes the product"),
        ({"positions": "wavy"}, "positions is “wavy”, and has to be one of none, sinusoidal"),
        ({"norm": "batch"}, "norm is “batch”, and has to be one of layer, rms"),
        ({"layers": 0}, "layers is 0, and has to be a whole number from 1"),
        ({"width": 1 << 40}, "width is .*, and has to be a whole number from 1"),
        ({"dropout": 1.0}, "dropout is 1.0, and has to be at least 0 and less than 1"),
        *(
            ({name: wrong}, f"{name} is {wrong!r}, and has to be true or false")
            for name in ("residual", "causal_mask", "tied", "bias", "scaled_embedding")
            for wrong in (None, "yes", 1)
        ),
        ({"dropout": None}, "dropout is None, and has to be a number"),
        ({"epsilon": "small"}, "epsilon is 'small', and has to be a number"),
        ({"shape": "encoder", "causal_mask": False}, "causal_mask is of a decoder"),
        ({"positions": "t5", "buckets": 32, "farthest": 8}, "farthest is 8, and the 32 buckets"),
        ({"pad_token_id": 40}, "pad_token_id is 40, and has to be a whole number from 0 to 31"),
    ],
)
def test_impossible_switches(switches, words):
    with pytest.raises(ValueError, match=words):
        TransformerConfig(**switches)


def test_a_saved_config_comes_back(tmp_path):
    made = TransformerConfig(shape="decoder", positions="t5", width=48, heads=6, key_heads=3, causal_mask=False)
    made.save_pretrained(tmp_path)
    again = TransformerConfig.from_pretrained(tmp_path)
    assert {name: getattr(again, name) for name in SWITCHES} == {name: getattr(made, name) for name in SWITCHES}


def test_switches_are_read_from_words():
    assert as_switch("tied", "off") is False
    assert as_switch("heads", "8") == 8
    assert as_switch("dropout", "0.2") == 0.2
    assert all(as_switch(name, known[0]) == known[0] for name, known in CHOICES.items())
    for name, text, words in (
        ("heads", "many", "heads is “many”, and has to be a whole number"),
        ("tied", "maybe", "tied is on or off, not “maybe”"),
        ("dropout", "nan", "dropout is “nan”, and has to be a number"),
        ("vocabulary", "9", "there is no switch “vocabulary”"),
    ):
        with pytest.raises(ValueError, match=words):
            as_switch(name, text)
