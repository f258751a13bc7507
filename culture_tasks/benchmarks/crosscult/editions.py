"""The editions of CrossCult-KIBench: the paper's, and those with a further partition of a user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from culture_tasks.prompt_files import load

Order = tuple[str, ...]
"""Partitions in the order in which a chain inserts them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A language and its culture, such as Chinese in China (section 3.1).

    Attributes:
        code: Code of the language (ISO 639), which names the partition: no two of an edition share a language.
        language: Name of the language in English, as in Figure 9 and for the judge.
        place: Code of the country or region (:mod:`culture_tasks.vocabulary`).
        name: Its name in the fields of a raw case.
        system: System prompt in the language; empty for the one of Figure 9.
    """

    code: str
    language: str
    place: str
    name: str
    system: str = ""

    @property
    def fields(self) -> dict[str, str]:
        """Fields of a raw case for its question, its answer and, unless that is in English, a gloss in English."""
        answer = f"answer_{self.name}_{self.code}"
        gloss = {} if self.code == "en" else {"gloss": f"{answer}_en"}
        return {"question": f"question_{self.code}", "answer": answer, **gloss}

    @property
    def system_prompt(self) -> str:
        """The system prompt of the language."""
        return self.system or load(__package__, f"system_{self.code}.v1").text


@dataclass(frozen=True, slots=True, kw_only=True)
class Edition:
    """A set of raw cases, and the insertions from it.

    Attributes:
        targets: Partitions that are inserted in the single-insert setting.
        orders: Orders of the chains, that of the sequential setting first.
        diagnostic: Name of the task in which nothing is inserted.
        root: Folder of an own culture; None for the paper's cases.
    """

    name: str
    title: str
    partitions: tuple[Partition, ...]
    targets: tuple[str, ...]
    orders: tuple[Order, ...]
    diagnostic: str
    root: Path | None = None

    def __getitem__(self, code: str) -> Partition:
        return next(partition for partition in self.partitions if partition.code == code)

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of its partitions."""
        return tuple(partition.code for partition in self.partitions)

    @property
    def languages(self) -> dict[str, str]:
        """The names of the languages, by code."""
        return {partition.code: partition.language for partition in self.partitions}

    def in_order(self, order: Sequence[str], between: str = ", ") -> str:
        """Returns the names of a chain's languages in order."""
        return between.join(self.languages.get(code, code) for code in order)


PAPER = Edition(
    name="crosscult",
    title="CrossCult-KIBench",
    partitions=(  # section 3.1; the fields are those of Figure 8
        Partition(code="en", language="English", place="US", name="us"),
        Partition(code="zh", language="Chinese", place="CN", name="china"),
        Partition(code="ar", language="Arabic", place="arab", name="arab"),
    ),
    targets=("zh", "ar"),  # section 3.1
    orders=(("en", "zh", "ar"), ("ar", "zh", "en")),  # section 3.1, and the supplementary chains of Appendix F.1
    diagnostic="crosscult_diagnostic",
)
