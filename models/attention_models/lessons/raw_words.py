"""Attention without any weights: dot products of the words' own vectors, and softmax of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from attention_models.files.devices import weight_of
from attention_models.lessons.reading import Reading
from attention_models.views.variance import softmax


def raw_product(r: Reading) -> float:
    """e · e' of the embeddings of query and key, without positions."""
    return float(_products(r)[r.place_of(r.fact.key, r.trace.tokens)])


def raw_weight(r: Reading) -> float:
    """The share of the key by softmax of these products over all tokens of the text."""
    return float(softmax(_products(r))[r.place_of(r.fact.key, r.trace.tokens)])


def raw_peak(r: Reading) -> str:
    """The token with the largest product."""
    return r.trace.tokens[int(_products(r).argmax())].word


def _products(r: Reading) -> np.ndarray:
    """Of the query's embedding with that of every token, (tokens,) float64."""
    module: Any = r.model.module
    embedding = getattr(module, "get_input_embeddings", lambda: None)()
    if r.trace.source or embedding is None or r.model.info.family == "vision":
        raise ValueError("it is of models of one stack that read text")
    ids = [token.id for token in r.trace.tokens]
    vectors = weight_of(embedding)[ids].detach().double().cpu().numpy()
    products: np.ndarray = vectors @ vectors[r.place_of(r.fact.query, r.trace.tokens)]
    return products
