"""What people write about, and what they wrote, as far as a project's entries say."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from culture_tasks.benchmarks.crosscult.benchmark import open_release
from culture_tasks.benchmarks.crosscult.culture_options import SCENARIOS, partitions_of, written_partitions
from culture_tasks.benchmarks.crosscult.editions import Partition
from culture_tasks.benchmarks.crosscult.raw_cases import QuestionAnswer
from culture_tasks.benchmarks.crosscult.vocabulary import TOPIC_NAMES
from culture_tasks.benchmarks.culture_rows import digest
from culture_tasks.benchmarks.cultures import Config, Dropped, Entry, Row, State
from culture_tasks.data.images import image_key

TABLE = "cases"
"""Name without suffix of the table of raw cases, brought in or built."""

HOLDS = "holds"
"""The verdict by which a native accepts an answer."""

VERDICTS = {
    HOLDS: "it holds",
    "too_general": "it is too general",
    "stereotype": "it is a stereotype",
    "wrong_language": "the language is wrong or unnatural",
    "rewrite": "it has to be rewritten",
}

_REJECTED = {
    ("fits", False): "it doesn't show the scenario",
    ("artefacts", True): "it has a visible error",
    ("suitable", False): "it isn't suitable",
    ("decision", "reject"): "rejected",
}
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}")  # a text that can be the name of a row as it is
_UNSAFE = re.compile(r"[^A-Za-z0-9]+")


class Text(NamedTuple):
    """A question and an answer that a person wrote.

    Attributes:
        checks: The row of their check, which is another one once they are changed.
        drafted_by: The model whose draft they are, word by word; empty where people wrote or changed them.
    """

    person: str
    question: str
    answer: str
    gloss: str
    checks: str
    drafted_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An image with a scenario, of which a case may come.

    Attributes:
        name: The name of its row in each step.
        sheet: What people wrote of the scenario, where it is their own.
        question: The question in English that natives of each partition put into their language.
        part: Its part of the data, as soon as that is known.
        samples: Questions and answers of partitions that are published.
        texts: What natives accept, by partition.
    """

    name: str
    scenario: str
    topic: str
    description: str
    image: str = ""
    sheet: Mapping[str, Any] = field(default_factory=dict)
    question: str = ""
    part: str = ""
    samples: Mapping[str, QuestionAnswer] = field(default_factory=dict)
    texts: Mapping[str, Text] = field(default_factory=dict)

    def row(self, also: Mapping[str, str], **fields: Any) -> Row:
        """Returns a row in which it is shown, with further texts."""
        shown = {"Scenario": self.scenario, "Topic": TOPIC_NAMES[self.topic], "Description": self.description, **also}
        shown = {label: text for label, text in shown.items() if text}
        return Row(**{"name": self.name, **fields}, shown=shown, image=self.image, group=row_name(self.scenario))


def row_name(text: str) -> str:
    """Returns a name for a row that is the same whenever the text is."""
    if _SAFE.fullmatch(text):
        return text
    readable = _UNSAFE.sub("-", text)[:40].strip("-") or "row"
    return f"{readable}.{digest(text)[:8]}"


def step_of(kind: str, config: Config, partition: Partition) -> str:
    """Returns the name of a partition's step: that of the culture's own partition is the kind alone."""
    return kind if partition.code == config.language else f"{kind}_{partition.code}"


def blank_sheets(state: State) -> list[Row]:
    """Returns a row for each scenario that the group wants."""
    number = state.config.options.get("scenarios", 0)
    return [Row(name=f"s{place:02}", shown={"Scenario": f"{place} of {number}"}) for place in range(1, number + 1)]


def published_items(state: State) -> dict[str, Item]:
    """Returns the published cases that get the new partition, by id."""
    release = open_release(state.data_folder)
    images = {Path(name).stem: name for name in state.images}
    contrasts = [partition.code for partition in partitions_of(state.config)[:-1]]
    by_scenario: dict[str, list[str]] = {}
    for identifier in sorted(release.raw.by_id):
        by_scenario.setdefault(release.raw.by_id[identifier].scenario, []).append(identifier)
    items = {}
    for scenario, ids in sorted(by_scenario.items()):
        if release.draw.split[scenario] not in state.config.options["parts"]:
            continue
        rng = random.Random(f"{state.config.seed}-cases-{scenario}")  # noqa: S311
        for identifier in sorted(rng.sample(ids, min(state.config.options["cases"], len(ids)))):
            case = release.raw.by_id[identifier]
            items[identifier] = Item(
                name=row_name(identifier),
                scenario=scenario,
                topic=case.topic,
                description=case.description,
                image=images.get(row_name(identifier), ""),
                part=release.draw.split[scenario],
                samples={code: case.samples[code] for code in contrasts},
            )
    return items


class Work:
    """What is usable of a project's entries, and why the rest isn't.

    Attributes:
        dropped: The rows that aren't usable, as far as somebody asked for what is.
    """

    def __init__(self, state: State) -> None:
        self.state, self.config = state, state.config
        self.dropped: list[Dropped] = []

    def drop(self, step: str, row: str, reason: str) -> None:
        """Notes why a row isn't usable."""
        self.dropped.append(Dropped(step, row, reason))

    @cached_property
    def sheets(self) -> dict[str, Mapping[str, Any]]:
        """The usable sheets of scenarios, by row."""
        usable: dict[str, Mapping[str, Any]] = {}  # none where the cases are published
        stances = [f"stance_{partition.code}" for partition in partitions_of(self.config)]
        for row in blank_sheets(self.state):
            if row.name not in self.state.entries.get("scenario", {}) or not (
                entry := self._first("scenario", row.name)
            ):
                continue
            values = entry.values
            if same := [name for name, sheet in usable.items() if sheet["name"] == values["name"]]:
                self.drop("scenario", row.name, f"{same[0]} has the same name {values['name']!r}")
            elif len({values[stance] for stance in stances}) == 1:
                self.drop("scenario", row.name, "it is judged alike in all partitions")
            else:
                usable[row.name] = values
        return usable

    @cached_property
    def images(self) -> list[Item]:
        """The images of usable scenarios."""
        items: list[Item] = []
        first: dict[str, str] = {}
        for image in self.state.images:
            row, _, file = image.partition("/")
            name = f"{row}.{row_name(file)}"
            if row not in self.sheets:
                self.drop("screen", name, f"there is no usable scenario {row!r}")
                continue
            same = first.setdefault(image_key((self.state.folder / "images" / image).read_bytes()), image)
            if same != image:
                self.drop("screen", name, f"the same file as {same}")
                continue
            sheet = self.sheets[row]
            about = {"scenario": sheet["name"], "topic": sheet["topic"], "description": sheet["description"]}
            items.append(Item(name=name, image=image, sheet=sheet, **about))
        return items

    @cached_property
    def screened(self) -> list[Item]:
        """The images that everybody who looks at them keeps."""
        kept = []
        for item in self.images:
            looks = self.state.of("screen", item.name)
            reasons = [
                reason for look in looks for (name, value), reason in _REJECTED.items() if look.values[name] == value
            ]
            if not reasons and len(looks) < self.config.options["screeners"]:
                reasons = [self._why_nothing("screen", item.name)]
            if reasons:
                self.drop("screen", item.name, "; ".join(dict.fromkeys(reasons)))
            else:
                kept.append(item)
        return kept

    @cached_property
    def items(self) -> list[Item]:
        """The images about which natives write, with what they have to know."""
        if self.config.way != SCENARIOS:
            return list(published_items(self.state).values())
        asked = ((item, self._first("question", item.name)) for item in self.screened)
        return [replace(item, question=entry.values["question"]) for item, entry in asked if entry]

    def text(self, partition: Partition, row: str) -> Text | None:
        """Returns what a native wrote in a row; None for nothing that is usable."""
        step = step_of("answer", self.config, partition)
        if (entry := self._first(step, row)) is None:
            return None
        values = entry.values
        written = values["question"], values["answer"]
        drafts = {
            draft.person: (draft.values.get("question"), draft.values.get("answer"))
            for draft in self.state.by_models(step, row)
        }
        drafted_by = next((person for person, texts in drafts.items() if texts == written), "")
        checks = f"{row}.{digest(*written)[:8]}"
        return Text(entry.person, *written, values.get("gloss") or "", checks, drafted_by)

    def verdicts(self, partition: Partition, text: Text) -> list[str]:
        """Returns the verdicts of natives on a text, its author's aside."""
        entries = self.state.of(step_of("check", self.config, partition), text.checks)
        return [entry.values["verdict"] for entry in entries if entry.person != text.person]

    def accepted(self) -> list[Item]:
        """Returns the images with a text that natives accept in each partition that is written."""
        partitions = written_partitions(self.config)
        found = []
        for item in self.items:
            texts = {one.code: text for one in partitions if (text := self._accepted(one, item.name))}
            if not item.image:
                self.drop("answer", item.name, "its image isn't in the project")
            elif len(texts) == len(partitions):
                found.append(replace(item, texts=texts))
        return found

    def _accepted(self, partition: Partition, row: str) -> Text | None:
        if (text := self.text(partition, row)) is None:
            return None
        verdicts, needed = Counter(self.verdicts(partition, text)), self.config.options["agree"]
        if verdicts[HOLDS] >= needed:
            return text
        said = ", ".join(f"{VERDICTS[name]}: {number}" for name, number in verdicts.items() if number)
        reason = f"{verdicts[HOLDS]} of the {needed} natives needed say that it holds ({said or 'nobody checked it'})"
        self.drop(step_of("check", self.config, partition), row, reason)
        return None

    def _first(self, step: str, row: str) -> Entry | None:
        """Returns the entry of a row that counts, the first person's; None where there is none, or the image is bad."""
        entries: Sequence[Entry] = self.state.of(step, row)
        for _ in entries[1:]:
            self.drop(step, row, "another person's entry; the first one counts")
        if not entries:
            self.drop(step, row, self._why_nothing(step, row))
        elif not entries[0].values.get("fits", True):
            self.drop(step, row, "the image doesn't show the scenario, or has an error")
        else:
            return entries[0]
        return None

    def _why_nothing(self, step: str, row: str) -> str:
        """Returns why a row has no entry that counts, without what people wrote: a data card tells it."""
        if self.state.skipped(step, row):
            return "skipped"
        return "a model's draft that nobody confirmed" if self.state.by_models(step, row) else "nobody filled it in"
