"""The editions of CrossCult-KIBench: the paper's, and those with a further partition of a user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from culture_tasks.prompt_files import load

Order = tuple[str, ...]
"""Partitions in the order in which a chain inserts them."""


@dataclass(frozen=True, slots=True)
class Partition:
    """A language and its culture, such as Chinese in China (section 3.1)."""

    code: str  # of the language (ISO 639), which names the partition
    language: str  # its name in English, as in Figure 9
    place: str  # code of the country or region (culture_tasks.vocabulary)
    name: str  # of the culture in the fields of a raw case
    system: str = ""  # the system prompt; empty for the one of Figure 9

    @property
    def question(self) -> str:
        """The field of a raw case for its question."""
        return f"question_{self.code}"

    @property
    def answer(self) -> str:
        """The field of a raw case for its answer."""
        return f"answer_{self.name}_{self.code}"

    @property
    def system_prompt(self) -> str:
        """The system prompt in the language."""
        return self.system or load(__package__, f"system_{self.code}.v1").text


@dataclass(frozen=True, slots=True, kw_only=True)
class Edition:
    """A set of raw cases, and the insertions from it."""

    name: str
    title: str
    partitions: tuple[Partition, ...]  # each in another language
    targets: tuple[str, ...]  # partitions that are inserted in the single-insert setting
    orders: tuple[Order, ...]  # of the chains, that of the sequential setting first
    diagnostic: str  # the task in which nothing is inserted
    root: Path | None = None  # folder of an own culture

    def __getitem__(self, code: str) -> Partition:
        return next(partition for partition in self.partitions if partition.code == code)

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of its partitions."""
        return tuple(partition.code for partition in self.partitions)

    def in_order(self, order: Sequence[str], between: str = ", ") -> str:
        """Returns the names of a chain's languages in order."""
        return between.join(self[code].language for code in order)


PAPER = Edition(
    name="crosscult",
    title="CrossCult-KIBench",
    partitions=(  # section 3.1, with the names in the fields of Figure 8
        Partition("en", "English", "US", "us"),
        Partition("zh", "Chinese", "CN", "china"),
        Partition("ar", "Arabic", "arab", "arab"),
    ),
    targets=("zh", "ar"),  # section 3.1
    orders=(("en", "zh", "ar"), ("ar", "zh", "en")),  # section 3.1, and the supplementary chains of Appendix F.1
    diagnostic="crosscult_diagnostic",
)
