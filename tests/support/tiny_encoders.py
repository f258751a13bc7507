"""Tiny encoders of sentences and of images with random weights, made on the spot and saved as checkpoints."""

from __future__ import annotations

from pathlib import Path

import torch
from tiny_models import END, START, make_tokenizer
from tokenizers.processors import TemplateProcessing
from transformers import (
    BertConfig,
    BertModel,
    CLIPConfig,
    CLIPImageProcessorPil,
    CLIPModel,
    CLIPProcessor,
    PreTrainedTokenizerFast,
)

SIDE = 56
WIDTH = 16
POSITIONS = 77
_WEIGHTS = {"initializer_range": 0.5}  # the usual 0.02 makes all vectors alike
_LAYERS = {"hidden_size": WIDTH, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


def save_tiny_bert(folder: Path, seed: int = 0) -> Path:
    """Saves an encoder of sentences."""
    torch.manual_seed(seed)
    tokenizer = make_tokenizer()
    BertModel(BertConfig(vocab_size=len(tokenizer), **_LAYERS, **_WEIGHTS)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_word_counter(folder: Path, tokenizer: PreTrainedTokenizerFast) -> Path:
    """Saves an encoder without layers, whose vectors are random projections of a sentence's words."""
    torch.manual_seed(0)
    sizes = {**_LAYERS, "hidden_size": 128, "num_hidden_layers": 0}
    model = BertModel(BertConfig(vocab_size=len(tokenizer), **sizes, **_WEIGHTS))
    with torch.no_grad():
        model.embeddings.position_embeddings.weight.zero_()
        model.embeddings.token_type_embeddings.weight.zero_()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_tiny_clip(folder: Path, seed: int = 0) -> Path:
    """Saves an encoder of images and texts, whose texts begin and end with special tokens, as CLIP's do."""
    torch.manual_seed(seed)
    tokenizer = make_tokenizer()
    start, end = tokenizer.convert_tokens_to_ids([START, END])
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{START} $A {END}", special_tokens=[(START, start), (END, end)]
    )
    ends = {"bos_token_id": start, "eos_token_id": end}
    text = {"vocab_size": len(tokenizer), "max_position_embeddings": POSITIONS, **ends}
    vision = {"image_size": SIDE, "patch_size": 28}  # with more patches their mean hides what an image shows
    config = CLIPConfig(
        text_config={**_LAYERS, **text, "projection_dim": WIDTH},
        vision_config={**_LAYERS, **vision, "projection_dim": WIDTH},
        projection_dim=WIDTH,
    )
    model = CLIPModel(config)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.normal_(0.0, 0.5)
    model.save_pretrained(folder)
    images = CLIPImageProcessorPil(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE})
    CLIPProcessor(images, tokenizer).save_pretrained(folder)
    return folder
