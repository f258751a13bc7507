"""Tiny models with random weights, made on the spot, for the demo and the tests.

They need no network, no GPU and a second or two, and they know nothing: what they answer is noise, but it is
the same noise for the same input and other noise for another input, and it ends by itself after some tokens.

The command line makes one::

    python examples/tiny_models.py lm DIR
    python examples/tiny_models.py vlm DIR

How the harnesses load them on a CPU (tried with lm-eval 0.4.13 and lmms-eval 0.7.3):

* lm-eval ``hf``: ``--model_args pretrained=DIR --device cpu``, with and without ``--apply_chat_template``.
* lm-eval ``hf-multimodal``: the same. Without ``--apply_chat_template`` every ``<image>`` of the prompt
  becomes the tokenizer's image token; with it the processor's template puts the token there.
* lmms-eval ``internvl_hf``, a *chat* model: ``pretrained=DIR,device=cpu,device_map=cpu``, batch size 1. It runs
  text-only documents too. On two ranks it wants GPUs, so two ranks on a CPU need a test double.
* Of lmms-eval's *simple* models ``llava_hf``, ``qwen2_5_vl`` and most others import ``decord``, which a plain install
  lacks. ``gemma3`` and ``idefics2`` take a CPU, but want tokenizers of their own families, and ``idefics2`` fails on
  a document without an image. ``--force_simple`` doesn't help: ``internvl_hf`` has no simple twin. So tests of the
  simple type use the doubles in ``tests/support/lmms_models.py``, which has one of each type.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    GotOcr2ImageProcessor,
    InternVLConfig,
    InternVLForConditionalGeneration,
    InternVLProcessor,
    InternVLVideoProcessor,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SEED = 20240611
VOCABULARY = 1024
CONTEXT = 16_384
HEAD_SIZE = 16  # of attention; vLLM's build for CPUs takes 64, and not 16
TILE = 56  # pixels; an image of any size becomes tiles of this side
PATCH = 14
TOKENS_PER_TILE = (TILE // PATCH // 2) ** 2
WEIGHT_STD = 0.3  # the usual 0.02 gives a tiny model one answer for every input
END_BOOST = 2.0  # scales the end token's row, so that answers have tens of tokens, not thousands

PAD, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
IMAGE_START, IMAGE_END, IMAGE, VIDEO = "<img>", "</img>", "<IMG_CONTEXT>", "<video>"

CHAT_TEMPLATE = """\
{%- for message in messages -%}
<|im_start|>{{ message['role'] }}
{% if message['content'] is string %}{{ message['content'] }}{% else %}
{%- for part in message['content'] -%}
{%- if part['type'] == 'image' %}<IMG_CONTEXT>
{% elif part['type'] == 'video' %}<video>
{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif -%}
{%- endfor -%}
{% endif %}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% endif -%}
"""

_CORPUS = (
    "What is the name of the dish in the picture, and on which day do families eat it together?",
    "People wear this garment at weddings; the colour says who is married and who is not yet.",
    "Rate the answer: it is correct, it is partly correct, or it is not correct. Rating: [[7]] rating=2 rating=1",
    "我们在春节的时候吃饺子、贴春联，长辈给孩子们红包。这道菜叫什么名字？",
    "喝茶的时候，主人先给客人倒茶，客人用手指轻轻敲桌子表示感谢。",
    "お正月には神社へ行き、家族でおせち料理を食べます。この着物は何と言いますか。",
    "食事の前には「いただきます」、終わったら「ごちそうさま」と言います。",
    "في العيد تزور العائلات بعضها، ويشرب الضيوف القهوة مع التمر في المجلس.",
    "ما اسم هذا الطبق، ومتى يأكله الناس في رمضان؟",
    "दीवाली पर लोग दीये जलाते हैं और मिठाई बाँटते हैं। इस पोशाक का नाम क्या है?",
    "En la plaza la gente baila y come juntos; la abuela prepara el maíz. ¿Cómo se llama este plato?",
    "Watu hukusanyika jioni, hula ugali na kuimba nyimbo. Chakula hiki kinaitwaje?",
)


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Train a small byte-level BPE tokenizer: common words are one token, and any composed (NFC) text round-trips."""
    specials = [PAD, START, END, IMAGE_START, IMAGE_END, IMAGE, VIDEO]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=specials,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_CORPUS, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        padding_side="left",
        model_max_length=CONTEXT,
        model_input_names=["input_ids", "attention_mask"],
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
        extra_special_tokens={
            "start_image_token": IMAGE_START,
            "end_image_token": IMAGE_END,
            "context_image_token": IMAGE,
            "video_token": VIDEO,
        },
    )


def make_tiny_lm(folder: str | Path, head_size: int = HEAD_SIZE) -> Path:
    """Make a tiny causal language model with its tokenizer in ``folder``, and give the folder back."""
    tokenizer = make_tokenizer()
    model = Qwen2ForCausalLM(_text_config(tokenizer, head_size))
    randomise(model, silenced=_unspeakable(tokenizer))
    return _save(folder, model, tokenizer)


def make_tiny_vlm(folder: str | Path, head_size: int = HEAD_SIZE) -> Path:
    """Make a tiny InternVL with its processor in ``folder``, and give the folder back."""
    tokenizer = make_tokenizer()
    model = InternVLForConditionalGeneration(_internvl_config(tokenizer, head_size))
    randomise(model, silenced=_unspeakable(tokenizer))
    return _save(folder, model, _internvl_processor(tokenizer))


def randomise(model: PreTrainedModel, *, silenced: Iterable[int] = ()) -> None:
    """Draw the weights of ``model`` anew, larger than usual and always alike, so that its answer depends on its input.

    Args:
        model: A model with a language modelling head of its own (not tied to the embedding) and an end token.
        silenced: Tokens that the model must never produce, such as those that stand for an image.
    """
    generator = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for _, weight in sorted(model.named_parameters()):
            if weight.dim() > 1:
                weight.normal_(0.0, WEIGHT_STD, generator=generator)
        head = model.get_output_embeddings().weight
        head[list(silenced)] = 0.0
        head[model.generation_config.eos_token_id] *= END_BOOST


def _text_config(tokenizer: PreTrainedTokenizerFast, head_size: int) -> Qwen2Config:
    return Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=4 * head_size,
        intermediate_size=8 * head_size,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )


def _internvl_config(tokenizer: PreTrainedTokenizerFast, head_size: int = HEAD_SIZE) -> InternVLConfig:
    text = _text_config(tokenizer, head_size)
    return InternVLConfig(
        vision_config={
            "hidden_size": 2 * head_size,
            "intermediate_size": 4 * head_size,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "image_size": [TILE, TILE],
            "patch_size": [PATCH, PATCH],
        },
        text_config=text.to_dict(),
        image_token_id=tokenizer.convert_tokens_to_ids(IMAGE),
        image_seq_length=TOKENS_PER_TILE,
        tie_word_embeddings=False,
        eos_token_id=text.eos_token_id,
        pad_token_id=text.pad_token_id,
    )


def _internvl_processor(tokenizer: PreTrainedTokenizerFast) -> InternVLProcessor:
    size = {"height": TILE, "width": TILE}
    return InternVLProcessor(
        image_processor=GotOcr2ImageProcessor(size=size, crop_to_patches=True),
        tokenizer=tokenizer,
        video_processor=InternVLVideoProcessor(size=size),
        image_seq_length=TOKENS_PER_TILE,
        chat_template=CHAT_TEMPLATE,
    )


def _unspeakable(tokenizer: PreTrainedTokenizerFast) -> list[int]:
    """Give the tokens that no answer may hold: special ones but for the end, controls, and parts of a character."""
    special = set(tokenizer.all_special_ids) - {tokenizer.eos_token_id}
    return sorted(special.union(token for token in range(len(tokenizer)) if not _is_text(tokenizer.decode([token]))))


def _is_text(piece: str) -> bool:
    return piece.isprintable() and "\N{REPLACEMENT CHARACTER}" not in piece


def _save(folder: str | Path, model: PreTrainedModel, processor: PreTrainedTokenizerFast | InternVLProcessor) -> Path:
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return Path(folder)


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the model that the command line names."""
    parser = argparse.ArgumentParser(description="Make a tiny model with random weights.")
    parser.add_argument("kind", choices=["lm", "vlm"], help="a language model, or one that sees images too")
    parser.add_argument("folder", type=Path, help="where to save it")
    options = parser.parse_args(arguments)
    make = make_tiny_lm if options.kind == "lm" else make_tiny_vlm
    print(make(options.folder))


if __name__ == "__main__":
    main()
