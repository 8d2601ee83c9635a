"""What kind of model a checkpoint holds, and what can be shown of it, told before any weight is read.

A family is what a model can do, not what it is called: transformers' own tables say which classes continue a text,
fill in what is masked, or look at pictures.
"""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, TypeGuard

import transformers
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.models.auto import modeling_auto as tables

from attention_models.protocol.values import CheckpointInfo, ClassHead, StackInfo

_AUTO = {
    "causal": "AutoModelForCausalLM",
    "masked": "AutoModelForMaskedLM",
    "seq2seq": "AutoModelForSeq2SeqLM",
    "vision": "AutoModelForImageClassification",
    "encoder": "AutoModel",
}
_CLASSIFIERS = {
    "text": ("AutoModelForSequenceClassification", tables.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES),
    "token": ("AutoModelForTokenClassification", tables.MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES),
    "span": ("AutoModelForQuestionAnswering", tables.MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES),
    "choice": ("AutoModelForMultipleChoice", tables.MODEL_FOR_MULTIPLE_CHOICE_MAPPING_NAMES),
    "pair": ("AutoModelForNextSentencePrediction", tables.MODEL_FOR_NEXT_SENTENCE_PREDICTION_MAPPING_NAMES),
}
_DISCRIMINATOR = "ElectraForPreTraining"  # Clark et al. 2020: of every token, whether another stood there
# in the order of their logits, as transformers documents it
_FOLLOWS = ClassHead("text", "softmax", ("is next", "is not next"))  # Devlin et al. 2019
_ORDER = ClassHead("text", "softmax", ("in this order", "swapped"))  # Lan et al. 2019 (ALBERT)
_SENSES = {"input_features": "listens to sound", "input_values": "listens to sound", "pixel_values": "reads pictures"}


_added: dict[str, type[PreTrainedModel]] = {}  # classes that are not transformers' own, by name


def add_family(model_type: str, *, causal: type, masked: type, seq2seq: type) -> None:
    """Let a model type that transformers does not have be told: its class for each family that it comes in."""
    for table, kind in (
        (tables.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, causal),
        (tables.MODEL_FOR_MASKED_LM_MAPPING_NAMES, masked),
        (tables.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES, seq2seq),
    ):
        table[model_type] = kind.__name__
        _added[kind.__name__] = kind


def settings_of(kind: type[PreTrainedConfig]) -> frozenset[str]:
    """The names of all that a config of this kind, or one of its parts, may set."""
    names = {field.name for field in dataclasses.fields(kind)} | set(kind.attribute_map) | {"num_labels"}
    parts = [settings_of(part) for part in kind.sub_configs.values() if _is_config(part) and part is not kind]
    return frozenset(names.union(*parts))


def _is_config(kind: Any) -> TypeGuard[type[PreTrainedConfig]]:
    return isinstance(kind, type) and issubclass(kind, PreTrainedConfig) and kind is not PreTrainedConfig


def shown_part(architecture: str, config: Any) -> tuple[str, Any]:
    """Of a model that holds texts against pictures (CLIP) its vision half; any other as it is."""
    half = _half(architecture, config, "vision_config")
    bare = () if half is None else _names(tables.MODEL_MAPPING_NAMES, half)
    return (bare[0], half) if bare else (architecture, config)


def text_part(architecture: str, config: Any) -> tuple[str, Any] | None:
    """Of a model that holds texts against pictures its text half; None of any other."""
    half = _half(architecture, config, "text_config")
    if half is None or _half(architecture, config, "vision_config") is None:
        return None
    name = f"{type(half).__name__.removesuffix('Config')}Model"
    return (name, half) if isinstance(getattr(transformers, name, None), type) else None


def _half(architecture: str, config: Any, name: str) -> PreTrainedConfig | None:
    """The config of one half of a model that has two and says no words."""
    kind, half = _class(architecture, config), getattr(config, name, None)
    return half if kind is not None and not kind.can_generate() and isinstance(half, PreTrainedConfig) else None


def family_of(architecture: str, config: Any) -> str:
    """ "causal", "masked", "encoder" (no head that says words), "seq2seq" (an encoder and a decoder) or "vision"."""
    kind = _class(architecture, config)
    two_stacks = bool(getattr(config, "is_encoder_decoder", False))
    if kind is not None and kind.main_input_name == "pixel_values" and not two_stacks:
        return "vision"
    if _is_text_encoder(architecture, config):
        return "encoder"
    if two_stacks:
        return "seq2seq"
    bare = kind is None or architecture in _names(tables.MODEL_MAPPING_NAMES, config)
    masked = _names(tables.MODEL_FOR_MASKED_LM_MAPPING_NAMES, config)
    if _is_causal(config):
        # a head that is the table of embeddings is in the files of the bare model too
        has_head = config.get_text_config().tie_word_embeddings if bare else kind is not None and kind.can_generate()
        return "causal" if has_head else "encoder"
    if masked and not bare and (architecture in masked or _says_words(architecture, config)):
        return "masked"
    return "encoder"


def class_head_of(architecture: str, config: Any) -> ClassHead | None:
    """The head that tells classes apart; None for one that says words, gives vectors or reads no text."""
    if architecture == _DISCRIMINATOR:
        return ClassHead("token", "sigmoid", ("replaced",), otherwise="original")
    of = _classifies(architecture, config)
    if of is None:
        return None
    if of == "choice":
        return ClassHead("choice", "softmax", ())
    if of == "pair":
        return _FOLLOWS
    if of == "span":
        return ClassHead("span", "softmax", ("start", "end"))
    labels = tuple(str(config.id2label.get(i, f"class {i}")) for i in range(int(config.num_labels)))
    if of == "token":
        return ClassHead("token", "softmax", labels)
    problem = config.problem_type  # as transformers chooses the loss: a single output is a number (a reward)
    if problem == "multi_label_classification":
        return ClassHead("text", "sigmoid", labels)
    return ClassHead("text", "number" if problem == "regression" or len(labels) == 1 else "softmax", labels)


def pair_head_of(architecture: str, config: Any) -> ClassHead | None:
    """What a model that was trained to fill in masks says of two texts beside that; None where it says nothing."""
    if architecture not in _names(tables.MODEL_FOR_PRETRAINING_MAPPING_NAMES, config):
        return None
    if config.model_type == "albert":
        return _ORDER
    return _FOLLOWS if config.model_type in ("bert", "big_bird", "ernie", "megatron-bert", "mobilebert") else None


def auto_class(info: CheckpointInfo, config: Any) -> tuple[Any, dict[str, Any]]:
    """transformers' auto class for such a checkpoint with the heads that are shown, and arguments to load it."""
    family, architecture = info.family, info.architecture
    if info.pair_head is not None or (info.class_head is not None and architecture == _DISCRIMINATOR):
        return transformers.AutoModelForPreTraining, {}
    of = _classifies(architecture, config) if info.class_head is not None else None
    if of is not None:
        return getattr(transformers, _CLASSIFIERS[of][0]), {}
    name = _AUTO[family]
    if family == "vision" and architecture not in _names(tables.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES, config):
        name = "AutoModel"
    if family == "encoder" and _is_text_encoder(architecture, config):
        name = "AutoModelForTextEncoding"
    if name == "AutoModel" and not _has_auto_class(config):
        return _class(
            architecture, config
        ), {}  # a part that transformers opens by its own name alone (SiglipTextModel)
    # nothing that we show lies behind the pooler, and fine-tuned checkpoints often come without one
    bare = _class("", config) if name == "AutoModel" else None
    options = {"add_pooling_layer": False} if bare is not None and _takes(bare, "add_pooling_layer") else {}
    return getattr(transformers, name), options


def from_config(kind: Any, config: Any, **options: Any) -> PreTrainedModel:
    """A model of such a config, with no weights read; `kind` is of `auto_class`."""
    make = kind._from_config if issubclass(kind, PreTrainedModel) else kind.from_config
    model: PreTrainedModel = make(config, **options)
    return model


def stacks_of(config: Any, family: str) -> tuple[StackInfo, ...]:
    """The stacks of attention layers that the config describes."""
    if family != "seq2seq":
        if family == "vision" or not _is_causal(config):
            return (_stack("encoder", text_config(config)),)
        # a decoder saved without its encoder still has a config of both (BartForCausalLM)
        return (_stack("decoder", text_config(config), "decoder_layers", "decoder_attention_heads"),)
    halves = _halves(config)
    if halves is not None:
        encoder, decoder = _stack("encoder", halves[0]), _stack("decoder", halves[1])
    else:
        encoder = _stack("encoder", config, "encoder_layers", "encoder_attention_heads")
        decoder = _stack("decoder", config, "decoder_layers", "decoder_attention_heads")
        layers = int(getattr(config, "num_decoder_layers", None) or decoder.layers)
        decoder = StackInfo("decoder", layers, decoder.heads, decoder.key_heads)
    return encoder, decoder, StackInfo("cross", decoder.layers, decoder.heads, decoder.key_heads)


def text_config(config: Any) -> Any:
    """The part of a config that describes the stack that predicts."""
    halves = _halves(config)
    return halves[1] if halves is not None else config.get_text_config()


def vocabulary_of(config: Any) -> int:
    """Tokens that the model knows; 0 for a model that reads none. One tokenizer serves both halves of a pair."""
    sizes = [int(getattr(half, "vocab_size", 0) or 0) for half in _halves(config) or (config.get_text_config(),)]
    return min(sizes)


def classes_of(architecture: str, config: Any) -> int:
    """Classes that the head of a vision model tells apart; 0 for one without."""
    has_head = architecture in _names(tables.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES, config)
    return int(config.num_labels) if has_head else 0


def channels_of(config: Any) -> int:
    """Channels of the pictures that a vision model takes: 1 grey, 3 colour."""
    return int(getattr(config, "num_channels", None) or 3)


def context_of(config: Any) -> int | None:
    """Tokens that fit; None for a model that states no bound (T5's relative positions)."""
    limits = [_context(half) for half in _halves(config) or (config.get_text_config(),)]
    return min((limit for limit in limits if limit is not None), default=None)


def refusal(family: str, architecture: str, config: Any) -> str:
    """Why nothing of such a checkpoint can be shown, whatever is in its files; "" where something can."""
    name = config.model_type
    kind = _class(architecture, config)
    sense = _SENSES.get(kind.main_input_name, "") if kind is not None and family != "vision" else ""
    if sense:
        return f"{name} {sense}, which this version cannot give it. Open a model of text."
    if family == "seq2seq" and not _names(tables.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES, config):
        return (
            f"config.json describes an encoder and a decoder (is_encoder_decoder), and transformers knows no {name} of "
            "both that reads and writes text. Open a model of text."
        )
    if family == "seq2seq" and class_head_of(architecture, config) is not None:
        return (
            f"{architecture} is a classifier of a family of encoders and decoders, and this version opens classifiers "
            "of one stack. Open a model of one stack, or one that writes."
        )
    if family == "seq2seq" and _writes_another_vocabulary(config):
        return (
            f"this {name} writes in a vocabulary of its own, apart from the one that it reads, and one tokenizer is "
            "asked here for both, which would label its words wrongly. Open a model of one vocabulary."
        )
    if any(stack.heads < 1 for stack in stacks_of(config, family)):
        return f"config.json names no attention heads, and {name} may have none. Open a transformer."
    apart = _no_one_grid(config) if family == "vision" else ""
    if apart:
        return f"{name} {apart}, so its attention cannot be drawn on one picture. Open a plain vision transformer."
    return ""


def wordless(family: str, architecture: str, config: Any) -> str:
    """Why a model with an output head says nothing here; "" where it does, or has none. Yang et al. 2019 (XLNet)."""
    if _reads_both_ways(config) and architecture in _names(tables.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, config):
        return "its words come from a second stream of queries, which is not run here"
    is_body = architecture in _names(tables.MODEL_MAPPING_NAMES, config) or _is_text_encoder(architecture, config)
    is_body = is_body or not _has_auto_class(config)
    is_known = isinstance(getattr(transformers, architecture, None), type)
    if family == "encoder" and is_known and not is_body and class_head_of(architecture, config) is None:
        return f"its head ({architecture}) is left out here"
    return ""


def weights_only(architecture: str, config: Any) -> str:
    """Why queries, keys and scores of such a model cannot be seen, only its weights; "" where all can."""
    kind = _class(architecture, config)
    if kind is None or kind._can_set_attn_implementation():
        return ""
    return (
        f"transformers' own code for {config.model_type} keeps queries, keys and scores to itself: "
        "only the weights can be seen."
    )


# --------------------------------------------------------------------------- what transformers knows


def _classifies(architecture: str, config: Any) -> str | None:
    """The key of `_CLASSIFIERS` that a class belongs to."""
    return next((of for of, (_, table) in _CLASSIFIERS.items() if architecture in _names(table, config)), None)


def _class(architecture: str, config: Any) -> type[PreTrainedModel] | None:
    """transformers' class called `architecture`, or the bare one of this config; None where there is none."""
    for name in (architecture, *_names(tables.MODEL_MAPPING_NAMES, config)):
        found = _added.get(name) or (getattr(transformers, name, None) if name.isidentifier() else None)
        if isinstance(found, type) and issubclass(found, PreTrainedModel):
            return found
    return None


def _names(table: Any, config: Any) -> tuple[str, ...]:
    """The classes that `table` has for this config."""
    found = table.get(config.model_type, ())
    return (found,) if isinstance(found, str) else tuple(found)


def _has_auto_class(config: Any) -> bool:
    return type(config) in transformers.AutoModel._model_mapping


def _takes(kind: type, argument: str) -> bool:
    return argument in inspect.signature(kind).parameters


def _is_text_encoder(architecture: str, config: Any) -> bool:
    """Whether it is the encoder of an encoder-decoder family, saved on its own (T5EncoderModel)."""
    return architecture in _names(tables.MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES, config) and (
        architecture not in _names(tables.MODEL_MAPPING_NAMES, config)
    )


def _is_causal(config: Any) -> bool:
    """Whether each token attends only to itself and those before it."""
    text = config.get_text_config()
    if _reads_both_ways(config):
        return False
    if getattr(text, "is_decoder", False) or getattr(text, "causal", False):
        return True
    if getattr(text, "use_bidirectional_attention", False) is True:
        return False
    # a family that also fills in masks is made to read on by one of the settings above
    return bool(_names(tables.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, config)) and not (
        _names(tables.MODEL_FOR_MASKED_LM_MAPPING_NAMES, config)
    )


def _reads_both_ways(config: Any) -> bool:
    """Whether it is an XLNet: its tokens attend to all others, and what says words are queries beside them."""
    return getattr(config.get_text_config(), "attn_type", "") == "bi"


def _writes_another_vocabulary(config: Any) -> bool:
    """Whether encoder and decoder have embeddings of different tokens (Marian's separate_vocabs, FSMT)."""
    pairs = (("vocab_size", "decoder_vocab_size"), ("src_vocab_size", "tgt_vocab_size"))
    sizes = [(getattr(config, read, None), getattr(config, written, None)) for read, written in pairs]
    apart = any(read and written and read != written for read, written in sizes)
    return apart or getattr(config, "share_encoder_decoder_embeddings", True) is False


def _says_words(architecture: str, config: Any) -> bool:
    """Whether a class beside those for masks has their head too (BertForPreTraining): one tied to the embeddings."""
    kind = _class(architecture, config)
    heads = (
        *_names(tables.MODEL_FOR_PRETRAINING_MAPPING_NAMES, config),
        *_names(tables.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, config),
    )
    return architecture in heads and bool(getattr(kind, "_tied_weights_keys", None))


# --------------------------------------------------------------------------- what a config says


def _no_one_grid(config: Any) -> str:
    """Why the layers of a vision model do not all attend to the same patches; "" where nothing says that."""
    depths = getattr(config, "depths", None) or getattr(config, "depth", None)
    if isinstance(depths, (list, tuple)):
        window = getattr(config, "window_size", None)
        within = f"a patch looks only within its window of {window} x {window}, and " if isinstance(window, int) else ""
        return f"works in {len(depths)} stages: {within}patches are merged from each stage to the next"
    if getattr(config, "num_hidden_layers", None) is None:
        return "has no one stack of layers that all look at the same patches"
    return ""


def _halves(config: Any) -> tuple[Any, Any] | None:
    """The configs of encoder and decoder where two models were put together; None for any other."""
    halves = getattr(config, "encoder", None), getattr(config, "decoder", None)
    return halves if all(isinstance(half, PreTrainedConfig) for half in halves) else None


def _stack(stack: str, config: Any, layers: str = "num_hidden_layers", heads: str = "num_attention_heads") -> StackInfo:
    count = _most(getattr(config, heads, None) or getattr(config, "num_attention_heads", None))
    shared = _most(getattr(config, "num_key_value_heads", None)) or count
    many = _most(getattr(config, layers, None) or getattr(config, "num_hidden_layers", None))
    return StackInfo(stack, many, count, shared)


def _most(number: Any) -> int:
    """A count; of a config that gives one for each layer, the largest."""
    return max((int(n) for n in number), default=0) if isinstance(number, (list, tuple)) else int(number or 0)


def grows(config: Any) -> bool:
    """Whether its rotations are scaled to each text's length (dynamic NTK), so that no length is too much for them."""
    settings = getattr(config.get_text_config(), "rope_parameters", None) or {}
    of_layers = [settings, *(part for part in settings.values() if isinstance(part, dict))]
    return any("dynamic" in str(part.get("rope_type", "")) for part in of_layers)


def _context(text: Any) -> int | None:
    if grows(text):
        return None
    limit = getattr(text, "max_position_embeddings", None) or getattr(text, "max_seq_len", None)
    if not isinstance(limit, int) or limit < 1:
        return None
    if text.model_type in ("roberta", "xlm-roberta", "camembert"):
        return limit - int(getattr(text, "pad_token_id", None) or 0) - 1  # positions count from the padding's id
    return limit
