"""How an answer is decoded, as a harness's request says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from culture_tasks.errors import SettingsError

DEFAULT_NEW_TOKENS = 1024
"""Maximum number of tokens of an answer if a task doesn't say, as in lmms-eval's own chat models."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """Decoding settings; the default is the paper's (section E.2).

    Attributes:
        max_new_tokens: Maximum number of tokens of an answer.
        temperature: 0 is greedy.
        top_p: Nucleus, if it samples.
        num_beams: Number of beams; 1 means no beam search.
    """

    max_new_tokens: int = 64
    temperature: float = 0.0
    top_p: float | None = None
    num_beams: int = 1

    @classmethod
    def from_request(cls, gen_kwargs: Mapping[str, Any]) -> Decoding:
        """Reads a request's ``generation_kwargs``.

        ``until`` is ignored, as in lmms-eval's own chat models: lmms-eval adds one to every task.

        Raises:
            SettingsError: If a value is not a number in range.
        """
        given = {name: gen_kwargs[name] for name in asdict(cls()) if gen_kwargs.get(name) is not None}
        try:
            decoding = cls(
                max_new_tokens=int(given.get("max_new_tokens", DEFAULT_NEW_TOKENS)),
                temperature=float(given.get("temperature", 0.0)),
                top_p=float(given["top_p"]) if "top_p" in given else None,
                num_beams=int(given.get("num_beams", 1)),
            )
        except (TypeError, ValueError):
            raise SettingsError(
                f"knowledge_insertion: generation_kwargs {given} are not numbers. Correct them."
            ) from None
        if decoding.max_new_tokens < 1 or decoding.temperature < 0 or decoding.num_beams < 1:
            raise SettingsError(
                f"knowledge_insertion: generation_kwargs {given} are out of range. Needed are max_new_tokens and "
                "num_beams of at least 1, and a temperature of at least 0."
            )
        return decoding

    @property
    def samples(self) -> bool:
        """Whether two answers to one request may differ, so that none is stored."""
        return self.temperature > 0

    def options(self) -> dict[str, Any]:
        """Returns the arguments of ``model.generate``; sampling parameters are unset if nothing is sampled."""
        sampling = {"temperature": self.temperature, "top_p": self.top_p} if self.samples else {}
        unset = {} if self.samples else {"temperature": None, "top_p": None, "top_k": None}
        return {
            "max_new_tokens": self.max_new_tokens,
            "num_beams": self.num_beams,
            "do_sample": self.samples,
            **{name: value for name, value in sampling.items() if value is not None},
            **unset,
        }

    def as_dict(self) -> dict[str, Any]:
        """Returns the settings for keys and reports."""
        return asdict(self)
