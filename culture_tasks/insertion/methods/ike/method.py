"""IKE: insertions are shown to the model in context, after demonstrations of how to use them.

A demonstration is a new fact with a prompt answered in its presence: the fact itself, a related prompt that the fact
changes, or an unrelated one that it doesn't. Made from a training case these are its insertion sample, its generality
items and its locality items, each with the data's own answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from pydantic import Field

from culture_tasks.insertion.core.adapter import MultimodalModel
from culture_tasks.insertion.core.devices import shown
from culture_tasks.insertion.core.edit_scopes import SentenceEncoder, edit_text
from culture_tasks.insertion.core.insertion_method import FitContext, InsertionMethod, MethodConfig, Prompt
from culture_tasks.insertion.core.requests import Insertion, Request, TrainingCase, text_part

_SAME = 1e-2  # the largest difference between the stored and the recomputed embedding of one sentence


class IkeConfig(MethodConfig):
    """Options of IKE.

    Attributes:
        demonstrations: Retrieved demonstrations that a request is shown.
        encoder: Model of sentence embeddings, from the Hub or a folder.
        max_text_length: Tokens of a sentence that the encoder reads.
        batch_size: Sentences that are encoded together.
    """

    demonstrations: int = Field(default=16, ge=0)
    encoder: str = "sentence-transformers/all-MiniLM-L6-v2"
    max_text_length: int = Field(default=512, ge=8)
    batch_size: int = Field(default=64, ge=1)


class IkeMethod(InsertionMethod):
    """In-context editing with retrieved demonstrations; every request sees all insertions.

    Demonstrations are text only, and are looked up when a sample is inserted. With several samples, the demonstrations
    nearest to any of them are shown, the nearest last.
    """

    name: ClassVar[str] = "ike"
    config_class: ClassVar[type[MethodConfig]] = IkeConfig
    needs_state: ClassVar[bool] = True
    answers_version: ClassVar[int] = 1
    config: IkeConfig

    def __init__(self, model: MultimodalModel, config: MethodConfig | None = None) -> None:
        super().__init__(model, config)
        self._encoder: SentenceEncoder | None = None
        self._texts: list[str] = []
        self._embeddings = torch.zeros(0, 1)
        self._insertions: list[Insertion] = []
        self._nearness: torch.Tensor | None = None

    def insert(self, insertion: Insertion) -> None:
        """Adds a sample, and looks up demonstrations for it."""
        self._insertions.append(insertion)
        if self._texts:
            similarity = self._embeddings @ self._encode([copying(insertion)])[0]
            self._nearness = similarity if self._nearness is None else torch.maximum(self._nearness, similarity)

    def reset(self) -> None:
        """Forgets all samples."""
        self._insertions, self._nearness = [], None

    def prompt(self, request: Request) -> Prompt:
        """Shows the request after demonstrations and all samples."""
        if not self._insertions:
            return Prompt(request)
        return Prompt(request.preceded_by([text_part(context_of(self.retrieved(), self._insertions))]))

    def retrieved(self) -> list[str]:
        """Returns the demonstrations for all insertions, the nearest last; of equal ones the earlier is nearer."""
        if self._nearness is None:
            return []
        nearest = torch.argsort(self._nearness, descending=True, stable=True)[: self.config.demonstrations]
        return [self._texts[place] for place in reversed(nearest.tolist())]

    def parameter_count(self) -> int:
        """Parameters of the sentence encoder."""
        return 0 if self._encoder is None else self._encoder.parameters

    def _encode(self, sentences: Sequence[str]) -> torch.Tensor:
        if self._encoder is None:
            config = self.config
            self._encoder = SentenceEncoder(config.encoder, config.max_text_length, self.model.device, self.name)
        return self._encoder.encode(sentences)

    def _fit(self, cases: Sequence[TrainingCase], _context: FitContext) -> dict[str, Any]:
        self._texts, size = demonstrations_of(cases), self.config.batch_size
        batches = [self._texts[start : start + size] for start in range(0, len(self._texts), size)]
        self._embeddings = torch.cat([self._encode(batch) for batch in shown(batches, "embeddings")])
        return {"demonstrations": len(self._texts), "encoder": self.config.encoder}

    def _tensors(self) -> dict[str, torch.Tensor]:
        return {"embeddings": self._embeddings}

    def _facts(self) -> dict[str, Any]:
        return {"demonstrations": list(self._texts)}

    def _restore(self, tensors: Mapping[str, torch.Tensor], facts: Mapping[str, Any]) -> None:
        self._texts, self._embeddings, self._encoder = list(facts["demonstrations"]), tensors["embeddings"], None
        first, stored = self._encode(self._texts[:1])[0], self._embeddings[0]
        if first.shape != stored.shape or float((first - stored).abs().max()) > _SAME:
            raise ValueError(
                f"{self.config.encoder!r} is not the encoder: it embeds the first demonstration differently"
            )


def demonstration(new_fact: str, answered: str) -> str:
    """Returns a new fact with a prompt answered in its presence."""
    return f"New Fact: {new_fact}\nPrompt: {answered}\n\n"


def copying(insertion: Insertion) -> str:
    """Returns the demonstration that repeats a fact, which also serves to look up demonstrations."""
    return demonstration(edit_text(insertion), edit_text(insertion))


def demonstrations_of(cases: Iterable[TrainingCase]) -> list[str]:
    """Returns the demonstrations of all cases, each once, in order."""
    texts: dict[str, None] = {}
    for case in cases:
        items = (case.insertion, *case.generality, *case.locality)
        texts |= dict.fromkeys(demonstration(edit_text(case.insertion), edit_text(item)) for item in items)
    return list(texts)


def context_of(demonstrations: Sequence[str], insertions: Sequence[Insertion]) -> str:
    """Returns the text before a request: the demonstrations, then all insertions, in order."""
    facts = "".join(f"New Fact: {edit_text(insertion)}\n" for insertion in insertions)
    return f"{''.join(demonstrations)}{facts}Prompt: "
