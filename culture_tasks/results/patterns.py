"""Pairs of a pattern of models and a value, such as ``--name '*/Qwen3-VL-8B*=Qwen3-VL 8B'``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from culture_tasks.errors import SettingsError, hint


def pair(option: str, text: str, example: str) -> tuple[str, str]:
    """Returns the pattern and the value of a pair; the first ``=`` parts them."""
    pattern, _, value = (part.strip() for part in text.partition("="))
    if not pattern or not value:
        raise SettingsError(f"{option} {text!r}: expected, say, {option.rpartition(' ')[2]} {example!r}.")
    return pattern, value


class ModelPatterns:
    """The user's pairs of an option, each of which must fit some model."""

    def __init__(self, option: str, texts: Sequence[str], example: str) -> None:
        self._option = option
        self.pairs = [(text, *pair(option, text, example)) for text in texts]
        self._used: set[str] = set()
        self._models: set[str] = set()

    def values(self, model: str, *names: str) -> Iterator[str]:
        """Yields the values of the patterns that fit a model, or another name of it."""
        self._models.add(model)
        for text, pattern, value in self.pairs:
            if any(fnmatchcase(name, pattern) for name in (model, *names)):
                self._used.add(text)
                yield value

    def refuse_unfitting(self) -> None:
        """Raises a SettingsError for a pattern that fitted nothing, perhaps since an earlier one always did."""
        for text, pattern, _ in self.pairs:
            if self._models and text not in self._used:
                earlier = " that an earlier pattern leaves" if len(self.pairs) > 1 else ""
                raise SettingsError(
                    f"{self._option} {text}: {pattern} fits no model{earlier}.{hint(pattern, sorted(self._models))}"
                )
