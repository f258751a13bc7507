"""Tiny multimodal models of several families with random weights, made on the spot.

The families differ in what an adapter must not take for granted: how many tokens an image has and what they are
called, positions of one or of three dimensions, attention with a cache or with a recurrent state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import tiny_models
import torch
import transformers as hf
from packaging.version import Version
from tokenizers.processors import TemplateProcessing
from transformers.models.smolvlm import processing_smolvlm

if Version(hf.__version__) < Version("5.2"):
    pytest.skip("the toy models of all families are configured for transformers 5.2", allow_module_level=True)

PATCH = 14
_QWEN3_PATCH = 16
SIDE = 56

_QWEN_IMAGE, _QWEN_VIDEO = "<|image_pad|>", "<|video_pad|>"
_VISION_START, _VISION_END = "<|vision_start|>", "<|vision_end|>"
_QWEN_TOKENS = (_QWEN_IMAGE, _QWEN_VIDEO, _VISION_START, _VISION_END)
_QWEN_TEMPLATE = tiny_models.CHAT_TEMPLATE.replace("<IMG_CONTEXT>\n", f"{_VISION_START}{_QWEN_IMAGE}{_VISION_END}")
_REASONING_TEMPLATE = _QWEN_TEMPLATE.replace(
    "<|im_start|>assistant\n",
    "<|im_start|>assistant\n{% if enable_thinking is false %}<think></think>{% else %}<think>{% endif %}",
)
_LLAVA_TEMPLATE = """\
{%- for message in messages -%}
{{ message['role'] | upper }}: {% for part in message['content'] -%}
{%- if part['type'] == 'image' %}<image>
{% else %}{{ part['text'] | trim }} {% endif -%}
{%- endfor -%}
{%- endfor -%}
{%- if add_generation_prompt -%}ASSISTANT:{% endif -%}
"""

_SMOL_END = "<end_of_utterance>"
_SMOL_TEMPLATE = (
    tiny_models.START
    + """\
{%- for message in messages -%}
{{ message['role'] | capitalize }}: {% for part in message['content'] -%}
{%- if part['type'] == 'image' %}<image>{% else %}{{ part['text'] }}{% endif -%}
{%- endfor -%}<end_of_utterance>
{% endfor -%}
{%- if add_generation_prompt -%}Assistant:{% endif -%}
"""
)

_BEGIN = "<bos>"

_ROPE = {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 10_000.0}
_QWEN_VISION = {
    "depth": 2,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_heads": 2,
    "out_hidden_size": 64,
    "patch_size": PATCH,
}
_QWEN3_VISION = {**_QWEN_VISION, "patch_size": _QWEN3_PATCH, "num_position_embeddings": 64}
_VISION = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": SIDE,
    "patch_size": PATCH,
}


@dataclass(frozen=True)
class Family:
    """A model with its processor."""

    model: hf.PreTrainedModel
    processor: hf.ProcessorMixin


def _tokenizer(*extra: str) -> hf.PreTrainedTokenizerFast:
    tokenizer = tiny_models.make_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": list(extra)} if extra else {})
    return tokenizer


def _finished(model: hf.PreTrainedModel, processor: hf.ProcessorMixin) -> Family:
    tokenizer = processor.tokenizer
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    silenced = set(tokenizer.all_special_ids) - {tokenizer.eos_token_id} | set(
        range(len(tokenizer), model.get_output_embeddings().weight.shape[0])
    )
    tiny_models.randomise(model, silenced=sorted(silenced))
    return Family(model.eval(), processor)


def _text(tokenizer: hf.PreTrainedTokenizerFast) -> dict[str, Any]:
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }


def _qwen_tokens(tokenizer: hf.PreTrainedTokenizerFast) -> dict[str, int]:
    names = ("image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id")
    ids = tokenizer.convert_tokens_to_ids([*_QWEN_TOKENS])
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    return dict(zip(names, ids, strict=True)) | ends


def _qwen_images(patch: int) -> hf.Qwen2VLImageProcessorPil:
    pixels = {"shortest_edge": (2 * patch) ** 2, "longest_edge": (6 * patch) ** 2}
    return hf.Qwen2VLImageProcessorPil(patch_size=patch, merge_size=2, temporal_patch_size=2, size=pixels)


def _internvl() -> Family:
    tokenizer = tiny_models.make_tokenizer()
    model = tiny_models.InternVLForConditionalGeneration(tiny_models._internvl_config(tokenizer))
    return _finished(model, tiny_models._internvl_processor(tokenizer))


def _qwen2_5_vl() -> Family:
    tokenizer = _tokenizer(*_QWEN_TOKENS)
    config = hf.Qwen2_5_VLConfig(
        text_config={**_text(tokenizer), "rope_parameters": _ROPE},
        vision_config={**_QWEN_VISION, "fullatt_block_indexes": [1], "window_size": 56},
        **_qwen_tokens(tokenizer),
    )
    processor = hf.Qwen2_5_VLProcessor(_qwen_images(PATCH), tokenizer, hf.Qwen2VLVideoProcessor(), _QWEN_TEMPLATE)
    return _finished(hf.Qwen2_5_VLForConditionalGeneration(config), processor)


def _qwen3_processor(tokenizer: hf.PreTrainedTokenizerFast, template: str) -> hf.Qwen3VLProcessor:
    videos = hf.Qwen3VLVideoProcessor(patch_size=_QWEN3_PATCH)
    return hf.Qwen3VLProcessor(_qwen_images(_QWEN3_PATCH), tokenizer, videos, template)


def _qwen3_vl() -> Family:
    tokenizer = _tokenizer(*_QWEN_TOKENS)
    config = hf.Qwen3VLConfig(
        text_config={**_text(tokenizer), "rope_parameters": {**_ROPE, "mrope_interleaved": True}},
        vision_config={**_QWEN3_VISION, "deepstack_visual_indexes": [0]},
        **_qwen_tokens(tokenizer),
    )
    return _finished(hf.Qwen3VLForConditionalGeneration(config), _qwen3_processor(tokenizer, _QWEN_TEMPLATE))


def _qwen3_5() -> Family:
    """Three of four layers are linear attention, whose state can't be cut back; the chat template lets it reason."""
    tokenizer = _tokenizer(*_QWEN_TOKENS)
    linear = {
        "num_hidden_layers": 4,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
    }
    rope = {**_ROPE, "mrope_interleaved": True, "partial_rotary_factor": 1.0}
    config = hf.Qwen3_5Config(
        text_config={**_text(tokenizer), **linear, "rope_parameters": rope},
        vision_config=_QWEN3_VISION,
        **_qwen_tokens(tokenizer),
    )
    model = hf.Qwen3_5ForConditionalGeneration(config)
    for name, weight in model.named_parameters():
        if name.endswith("A_log"):
            weight.data.fill_(-4.0)  # a drawn decay forgets the question before the prompt ends
    return _finished(model, _qwen3_processor(tokenizer, _REASONING_TEMPLATE))


_SQUARE = {"height": SIDE, "width": SIDE}
_LLAVA_VISION = {**_VISION, "model_type": "clip_vision_model", "num_hidden_layers": 3, "projection_dim": 32}
_LLAVA_PROCESSING = {
    "patch_size": PATCH,
    "vision_feature_select_strategy": "default",
    "chat_template": _LLAVA_TEMPLATE,
    "num_additional_image_tokens": 1,
}


def _llava() -> Family:
    tokenizer = _tokenizer("<image>")
    config = hf.LlavaConfig(
        text_config={**_text(tokenizer), "model_type": "llama"},
        vision_config=_LLAVA_VISION,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        tie_word_embeddings=False,
    )
    images = hf.CLIPImageProcessorPil(size=_SQUARE, crop_size=_SQUARE)
    return _finished(
        hf.LlavaForConditionalGeneration(config), hf.LlavaProcessor(images, tokenizer, **_LLAVA_PROCESSING)
    )


_TILES = [[SIDE, 2 * SIDE], [2 * SIDE, SIDE], [2 * SIDE, 2 * SIDE]]


def _llava_next() -> Family:
    """An image is tiles, and the tokenizer writes the begin-of-text token, which the chat template doesn't."""
    tokenizer = _with_begin("<image>", image_token="<image>")
    config = hf.LlavaNextConfig(
        text_config={**_text(tokenizer), "model_type": "llama", "bos_token_id": tokenizer.bos_token_id},
        vision_config=_LLAVA_VISION,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        image_grid_pinpoints=_TILES,
    )
    images = hf.LlavaNextImageProcessorPil(size={"shortest_edge": SIDE}, crop_size=_SQUARE, image_grid_pinpoints=_TILES)
    processor = hf.LlavaNextProcessor(images, tokenizer, **_LLAVA_PROCESSING)
    return _finished(hf.LlavaNextForConditionalGeneration(config), processor)


def _llava_onevision() -> Family:
    """An image alone is tiles; of several, each is one tile."""
    tokenizer = _tokenizer("<image>")
    config = hf.LlavaOnevisionConfig(
        text_config={**_text(tokenizer), "model_type": "qwen2"},
        vision_config={**_VISION, "model_type": "siglip_vision_model", "vision_use_head": False},
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        video_token_index=tokenizer.convert_tokens_to_ids(tiny_models.VIDEO),
        image_grid_pinpoints=_TILES,
    )
    processor = hf.LlavaOnevisionProcessor(
        hf.LlavaOnevisionImageProcessorPil(size=_SQUARE, image_grid_pinpoints=_TILES),
        tokenizer,
        hf.LlavaOnevisionVideoProcessor(size=_SQUARE),
        num_image_tokens=(SIDE // PATCH) ** 2,
        vision_feature_select_strategy="full",
        chat_template=tiny_models.CHAT_TEMPLATE.replace(tiny_models.IMAGE, "<image>"),
    )
    return _finished(hf.LlavaOnevisionForConditionalGeneration(config), processor)


def _smolvlm() -> Family:
    """The chat template writes the begin-of-text token, and an image has rows and columns of tiles."""
    marks = ("<image>", "<fake_token_around_image>", "<global-img>", _SMOL_END)
    tiles = [f"<row_{row}_col_{column}>" for row in range(1, 5) for column in range(1, 5)]
    tokenizer = _tokenizer(*marks, *tiles)
    tokenizer.bos_token, tokenizer.eos_token = tiny_models.START, _SMOL_END
    config = hf.SmolVLMConfig(
        text_config={**_text(tokenizer), "model_type": "llama", "bos_token_id": tokenizer.bos_token_id},
        vision_config=_VISION,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=2,
    )
    images = hf.SmolVLMImageProcessorPil(size={"longest_edge": 2 * SIDE}, max_image_size={"longest_edge": SIDE})
    # It writes out the number of a video's frames with a package that images don't need.
    processing_smolvlm.num2words = processing_smolvlm.num2words or str
    processor = hf.SmolVLMProcessor(
        images,
        tokenizer,
        hf.SmolVLMVideoProcessor(),
        image_seq_len=(SIDE // PATCH // 2) ** 2,
        chat_template=_SMOL_TEMPLATE,
    )
    return _finished(hf.SmolVLMForConditionalGeneration(config), processor)


def _with_begin(*extra: str, **named: str) -> hf.PreTrainedTokenizerFast:
    """Returns a tokenizer that puts a begin-of-text token before what it encodes, unless it is told not to."""
    tokenizer = _tokenizer(*extra, _BEGIN)
    tokenizer.bos_token = _BEGIN
    place = tokenizer.convert_tokens_to_ids(_BEGIN)
    begin = TemplateProcessing(single=f"{_BEGIN} $A", special_tokens=[(_BEGIN, place)])
    tokenizer.backend_tokenizer.post_processor = begin
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer.backend_tokenizer,
        bos_token=_BEGIN,
        eos_token=tokenizer.eos_token,
        pad_token=tokenizer.pad_token,
        padding_side="left",
        extra_special_tokens=named,
    )


def _gemma3() -> Family:
    """The chat template writes the begin-of-text token, and so does the tokenizer."""
    begin, end, patch = "<start_of_image>", "<end_of_image>", "<image_soft_token>"
    tokenizer = _with_begin(begin, end, patch, boi_token=begin, eoi_token=end, image_token=patch)
    text = {**_text(tokenizer), "bos_token_id": tokenizer.bos_token_id, "query_pre_attn_scalar": 16}
    config = hf.Gemma3Config(
        text_config={**text, "sliding_window": 4096, "layer_types": ["full_attention"] * 2},
        vision_config=_VISION,
        mm_tokens_per_image=4,
        image_token_index=tokenizer.convert_tokens_to_ids(patch),
        boi_token_index=tokenizer.convert_tokens_to_ids(begin),
        eoi_token_index=tokenizer.convert_tokens_to_ids(end),
        tie_word_embeddings=False,
    )
    images = hf.Gemma3ImageProcessorPil(size=_SQUARE)
    template = "{{ bos_token }}" + tiny_models.CHAT_TEMPLATE.replace("<IMG_CONTEXT>\n", begin)
    processor = hf.Gemma3Processor(images, tokenizer, template, image_seq_length=4)
    return _finished(hf.Gemma3ForConditionalGeneration(config), processor)


def _mistral3() -> Family:
    """As Gemma 3, and an image has rows of tokens with other tokens between them."""
    marks = ("[IMG]", "[IMG_BREAK]", "[IMG_END]")
    tokenizer = _with_begin(*marks, image_token=marks[0], image_break_token=marks[1], image_end_token=marks[2])
    config = hf.Mistral3Config(
        text_config={**_text(tokenizer), "model_type": "mistral", "bos_token_id": tokenizer.bos_token_id},
        vision_config={**_VISION, "model_type": "pixtral", "head_dim": 16},
        image_token_index=tokenizer.convert_tokens_to_ids(marks[0]),
        spatial_merge_size=2,
        vision_feature_layer=-1,
    )
    images = hf.PixtralImageProcessorPil(size={"longest_edge": SIDE}, patch_size={"height": PATCH, "width": PATCH})
    template = "{{ bos_token }}" + tiny_models.CHAT_TEMPLATE.replace("<IMG_CONTEXT>\n", marks[0])
    processor = hf.PixtralProcessor(images, tokenizer, patch_size=PATCH, spatial_merge_size=2, chat_template=template)
    return _finished(hf.Mistral3ForConditionalGeneration(config), processor)


FAMILIES: Mapping[str, Callable[[], Family]] = {
    "internvl": _internvl,
    "qwen2_5_vl": _qwen2_5_vl,
    "qwen3_vl": _qwen3_vl,
    "qwen3_5": _qwen3_5,
    "llava": _llava,
    "llava_next": _llava_next,
    "llava_onevision": _llava_onevision,
    "smolvlm": _smolvlm,
    "gemma3": _gemma3,
    "mistral3": _mistral3,
}


@cache
def family(name: str) -> Family:
    """Makes a model of a family, once for the process."""
    torch.set_num_threads(1)
    return FAMILIES[name]()


def save_family(name: str, folder: Path, seed: int | None = None) -> Path:
    """Saves a model of a family as a checkpoint; a seed makes it another model than :func:`family` makes."""
    made = FAMILIES[name]()
    if seed is not None:
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for weight in made.model.parameters():
                weight.add_(torch.randn(weight.shape, generator=generator), alpha=0.05)
    made.model.save_pretrained(folder)
    made.processor.save_pretrained(folder)
    return folder
