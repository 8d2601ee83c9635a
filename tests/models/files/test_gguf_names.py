"""What the names of GGUF files say; the names are of files as they lie on the hub."""

from __future__ import annotations

import pytest

from attention_models.files.gguf import bits_of, is_named_gguf, is_part, suggested


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("SmolLM2-135M-Instruct-Q4_K_M.gguf", 4),
        ("SmolLM2-135M-Instruct.Q4_1.gguf", 4),
        ("smollm2-135m-instruct-q8_0.gguf", 8),
        ("Qwen3-0.6B-IQ3_XXS.gguf", 3),
        ("Qwen3-0.6B-UD-Q6_K_XL.gguf", 6),
        ("gpt-oss-20b-MXFP4.gguf", 4),
        ("gemma-3-270m-it-F16.gguf", 16),
        ("gemma-3-270m-it-BF16.gguf", 16),
        ("phi-2.fp32.gguf", 32),
        ("Q2_K/model-Q5_K_S.gguf", 5),
        ("model.gguf", None),
        ("Qwen3-4B.gguf", None),
        ("llama-16b.gguf", None),
        ("q4ever.gguf", None),
        ("faq4.gguf", None),
    ],
)
def test_bits(name: str, bits: int | None) -> None:
    assert bits_of(name) == bits


def test_parts() -> None:
    assert is_part("BF16/model-BF16-00001-of-00003.gguf")
    assert not is_part("model-00001.gguf")
    assert is_named_gguf("a/B.GGUF")
    assert not is_named_gguf("gguf")


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ([("m-Q2_K.gguf", 2), ("m-Q4_K_M.gguf", 5), ("m-Q4_0.gguf", 4), ("m-F16.gguf", 16)], "m-Q4_0.gguf"),
        ([("m-Q2_K.gguf", 2), ("m-Q8_0.gguf", 9)], "m-Q8_0.gguf"),
        ([("m-Q2_K.gguf", 2), ("m-IQ3_M.gguf", 3)], ""),
        ([("one.gguf", 2), ("another.gguf", 3)], ""),
        ([("anything.gguf", 2)], "anything.gguf"),
        ([("mmproj-model-f16.gguf", 1), ("m-Q4_0.gguf", 4), ("m-Q8_0.gguf", 8)], "m-Q4_0.gguf"),
        ([("mmproj-F16.gguf", 1), ("m.gguf", 4)], "m.gguf"),
        ([("mmproj-F16.gguf", 1)], ""),
        ([], ""),
    ],
)
def test_suggested(files: list[tuple[str, int]], name: str) -> None:
    assert suggested(files) == name
