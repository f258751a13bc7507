"""How an answer is decoded, as a harness's request says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

from pydantic import Field, ValidationError
from pydantic.dataclasses import dataclass

from culture_tasks.errors import SettingsError

DEFAULT_NEW_TOKENS = 1024
"""Maximum number of tokens of an answer if a task doesn't say, as in lmms-eval's own chat models."""


@dataclass(frozen=True, slots=True)
class AnswerDecoding:
    """Decoding settings; the default is the paper's (section E.2). Temperature 0 is greedy, 1 beam no beam search."""

    max_new_tokens: Annotated[int, Field(ge=1)] = 64
    temperature: Annotated[float, Field(ge=0)] = 0.0
    top_p: float | None = None
    num_beams: Annotated[int, Field(ge=1)] = 1

    @classmethod
    def from_request(cls, gen_kwargs: Mapping[str, Any]) -> AnswerDecoding:
        """Reads a request's ``generation_kwargs``.

        ``until`` is ignored, as in lmms-eval's own chat models: lmms-eval adds one to every task.
        """
        given = {name: gen_kwargs[name] for name in asdict(cls()) if gen_kwargs.get(name) is not None}
        try:
            return cls(**{"max_new_tokens": DEFAULT_NEW_TOKENS, **given})
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            raise SettingsError(
                f"knowledge_insertion: generation_kwargs {problem['loc'][0]}={problem['input']!r}: {problem['msg']}. "
                "Correct it in the task or in --gen_kwargs."
            ) from None

    @property
    def samples(self) -> bool:
        """Whether two answers to one request may differ, so that none is stored."""
        return self.temperature > 0

    def options(self) -> dict[str, Any]:
        """Returns the arguments of ``model.generate``; sampling parameters are unset if nothing is sampled."""
        sampling: Mapping[str, float | None] = {"temperature": None, "top_p": None, "top_k": None}
        if self.samples:
            sampling = {"temperature": self.temperature, **({} if self.top_p is None else {"top_p": self.top_p})}
        return {
            "max_new_tokens": self.max_new_tokens,
            "num_beams": self.num_beams,
            "do_sample": self.samples,
            **sampling,
        }

    def as_dict(self) -> dict[str, Any]:
        """Returns the settings for keys and reports."""
        return asdict(self)
