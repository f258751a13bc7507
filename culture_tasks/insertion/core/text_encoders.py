"""Sentence embeddings, of length 1."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence

import torch

from culture_tasks.errors import SettingsError
from culture_tasks.insertion.core.identity import ModelIdentity, identify_encoder
from culture_tasks.text import tokens

_log = logging.getLogger(__name__)

LEXICAL = "lexical"
_LEXICAL_VERSION = "words in bins, 1"  # raise it whenever the same words are counted in another way


class TransformerEncoder:
    """Mean of the last hidden states over a sentence's tokens, as the paper's all-MiniLM-L6-v2 takes it."""

    def __init__(self, name: str, max_text_length: int, device: torch.device, method: str) -> None:
        from transformers import AutoModel, AutoTokenizer

        try:
            self._tokenizer = AutoTokenizer.from_pretrained(name, padding_side="right")
            self._model = AutoModel.from_pretrained(name, dtype=torch.float32).to(device).eval()
            kind = type(self._model).__name__
            problem = "" if hasattr(self._model.config, "hidden_size") else f"{kind} isn't a model of texts alone"
        except (OSError, ValueError) as error:
            problem = f"{str(error).strip().splitlines()[0]:.200}"
        if problem:
            raise SettingsError(
                f"{method}: the sentence encoder {name!r} can't be used ({problem}). Download one and name its folder "
                f"with encoder=DIR, or choose encoder={LEXICAL}, which counts words and is not the paper's."
            )
        self._max_text_length = max_text_length
        self.width, self.parameters = int(self._model.config.hidden_size), int(self._model.num_parameters())
        settings = {"max_text_length": max_text_length}
        self.identity = identify_encoder(self._model, self._tokenizer.get_vocab(), source=name, settings=settings)

    def encode(self, sentences: Sequence[str]) -> torch.Tensor:
        """Returns vectors of length 1, shape (sentences, width), float32, on the CPU."""
        batch = self._tokenizer(
            list(sentences), padding=True, truncation=True, max_length=self._max_text_length, return_tensors="pt"
        ).to(self._model.device)
        with torch.no_grad():
            states = self._model(**batch).last_hidden_state
        mask = batch["attention_mask"][..., None].to(states.dtype)
        means = (states * mask).sum(1) / mask.sum(1).clamp(min=1)
        return torch.nn.functional.normalize(means.float(), dim=-1).cpu()


class LexicalEncoder:
    """Counts words in hashed bins: no model and no network, in any language, and not the paper's."""

    identity = ModelIdentity(source=LEXICAL, weights=_LEXICAL_VERSION, run=_LEXICAL_VERSION)
    width, parameters = 512, 0

    def encode(self, sentences: Sequence[str]) -> torch.Tensor:
        """Returns vectors of length 1, shape (sentences, width), float32, on the CPU."""
        counts = torch.zeros(len(sentences), self.width)
        for row, sentence in enumerate(sentences):
            for token in tokens(sentence):
                counts[row, int.from_bytes(hashlib.sha256(token.encode()).digest()[:4]) % self.width] += 1
        return torch.nn.functional.normalize(counts, dim=-1)


SentenceEncoder = TransformerEncoder | LexicalEncoder
"""Maps sentences to vectors whose inner product is their similarity."""


def make_encoder(name: str, max_text_length: int, device: torch.device, method: str) -> SentenceEncoder:
    """Makes the encoder that a method's options name, and warns if it is not a model."""
    if name == LEXICAL:
        _log.warning("%s: encoder=%s counts words instead of the paper's sentence embeddings", method, LEXICAL)
        return LexicalEncoder()
    return TransformerEncoder(name, max_text_length, device, method)
