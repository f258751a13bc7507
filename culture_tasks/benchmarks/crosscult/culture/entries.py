"""What people write about, and what they wrote, as far as a project's entries say."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

from culture_tasks.benchmarks.crosscult.benchmark import open_release
from culture_tasks.benchmarks.crosscult.culture.options import SCENARIOS, partitions_of
from culture_tasks.benchmarks.crosscult.editions import PAPER, Edition, Partition
from culture_tasks.benchmarks.crosscult.raw_cases import QuestionAnswer
from culture_tasks.benchmarks.crosscult.vocabulary import TOPIC_NAMES, Topic
from culture_tasks.benchmarks.culture_rows import digest
from culture_tasks.benchmarks.cultures import Config, Dropped, Entry, Row, State
from culture_tasks.data.images import image_key
from culture_tasks.data.sources import Source
from culture_tasks.data.tables import SUFFIXES

TABLE = "cases"
"""Name without suffix of the table of raw cases, brought in or built."""

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}")  # a text that can be the name of a row as it is
_UNSAFE = re.compile(r"[^A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class Item:
    """An image with a scenario, of which a case may come.

    Attributes:
        name: The name of its row in each step.
        question: The question in English that natives of each partition put into their language.
        part: Its part of the data, where that is known already.
        samples: Questions and answers of partitions that it has already.
    """

    name: str
    scenario: str
    topic: Topic
    description: str
    image: str
    question: str = ""
    part: str | None = None
    samples: Mapping[str, QuestionAnswer] = field(default_factory=dict)

    @property
    def shown(self) -> dict[str, str]:
        """What a person sees of it."""
        shown = {"Scenario": self.scenario, "Topic": TOPIC_NAMES[self.topic], "Description": self.description}
        return {label: text for label, text in shown.items() if text}


class Items(NamedTuple):
    """What a culture is made of: images with a scenario, and why others fell out before anything was written."""

    items: Sequence[Item]
    dropped: Sequence[Dropped] = ()


def row_name(text: str) -> str:
    """Returns a name for a row that is the same whenever the text is."""
    if _SAFE.fullmatch(text):
        return text
    readable = _UNSAFE.sub("-", text)[:40].strip("-") or "row"
    return f"{readable}.{digest(text)[:8]}"


def published_edition(state: State) -> Edition:
    """Returns the cases to which a partition is added: those in the project's ``inputs``, else the user's."""
    inputs = state.folder / "inputs"
    if any((inputs / f"{TABLE}{suffix}").is_file() for suffix in SUFFIXES):
        source = Source(folder="inputs", stems=(TABLE,), hub=None, image_column="image", root=state.folder)
        return replace(PAPER, source=source)
    return PAPER


def drawn_cases(state: State) -> dict[str, Item]:
    """Returns the published cases that get the new partition, by id, without their images."""
    release = open_release(state.data_folder, published_edition(state))
    options = state.config.options
    contrasts = [partition.code for partition in partitions_of(state.config)[:-1]]
    by_scenario: dict[str, list[str]] = {}
    for identifier in sorted(release.raw.by_id):
        by_scenario.setdefault(release.raw.by_id[identifier].scenario, []).append(identifier)
    descriptions = {
        case.id: row.get("description") or ""
        for case, row in zip(release.raw.cases, release.raw.table.rows, strict=True)
    }
    items = {}
    for scenario, ids in sorted(by_scenario.items()):
        part = release.draw.split[scenario]
        if part not in options["parts"]:
            continue
        rng = random.Random(f"{state.config.seed}-cases-{scenario}")  # noqa: S311
        for identifier in sorted(rng.sample(ids, min(options["cases"], len(ids)))):
            case = release.raw.by_id[identifier]
            items[identifier] = Item(
                name=row_name(identifier),
                scenario=scenario,
                topic=cast("Topic", case.topic),
                description=descriptions[identifier],
                image="",
                part=part,
                samples={code: case.samples[code] for code in contrasts},
            )
    return items


def _of_published(state: State) -> Items:
    images = {Path(name).stem: name for name in state.images}
    return Items([replace(item, image=images.get(item.name, "")) for item in drawn_cases(state).values()])


@dataclass(frozen=True, slots=True)
class Scenario:
    """A sheet of a scenario: its row and its values."""

    row: str
    values: Mapping[str, Any]


def usable_scenarios(state: State) -> tuple[list[Scenario], list[Dropped]]:
    """Returns the usable sheets of scenarios, and why others aren't."""
    usable: dict[str, Scenario] = {}
    dropped = []
    stances = [f"stance_{partition.code}" for partition in partitions_of(state.config)]
    for row in blank_sheets(state):
        entry, others = _first(state, "scenario", row.name)
        dropped += others
        if entry is None:
            continue
        name = str(entry.values["name"])
        if name in usable:
            dropped.append(Dropped("scenario", row.name, f"{usable[name].row} has the same name {name!r}"))
        elif state.config.options["must_differ"] and len({entry.values.get(stance) for stance in stances}) == 1:
            dropped.append(Dropped("scenario", row.name, "it is judged alike in all partitions"))
        else:
            usable[name] = Scenario(row.name, entry.values)
    return list(usable.values()), dropped


def blank_sheets(state: State) -> list[Row]:
    """Returns a row for each scenario that the group wants."""
    number = state.config.options["scenarios"]
    return [Row(name=f"s{place:02}", shown={"Scenario": f"{place} of {number}"}) for place in range(1, number + 1)]


def images_of(state: State) -> tuple[list[Item], list[Dropped]]:
    """Returns the images of usable scenarios, and why others aren't taken."""
    scenarios = {scenario.row: scenario.values for scenario in usable_scenarios(state)[0]}
    items: list[Item] = []
    dropped = []
    first: dict[str, str] = {}
    for image in state.images:
        row, _, file = image.partition("/")
        name = f"{row}.{row_name(file)}"
        if row not in scenarios:
            dropped.append(Dropped("screen", name, f"there is no usable scenario {row!r}"))
            continue
        key = image_key((state.folder / "images" / image).read_bytes())
        if key in first:
            dropped.append(Dropped("screen", name, f"the same file as {first[key]}"))
            continue
        first[key] = image
        values = scenarios[row]
        items.append(Item(name, str(values["name"]), values["topic"], str(values["description"]), image))
    return items, dropped


def screened_images(state: State) -> tuple[list[Item], list[Dropped]]:
    """Returns the images that people keep, and why the others aren't kept."""
    items, dropped = images_of(state)
    kept = []
    for item in items:
        entries = state.of("screen", item.name)
        reasons = [reason for entry in entries for reason in _rejected(entry)]
        if reasons:
            dropped.append(Dropped("screen", item.name, "; ".join(dict.fromkeys(reasons))))
        elif len(entries) < state.config.options["screeners"]:
            dropped.append(Dropped("screen", item.name, _why_nothing(state, "screen", item.name)))
        else:
            kept.append(item)
    return kept, dropped


def _rejected(entry: Entry) -> Iterator[str]:
    values = entry.values
    if not values["fits"]:
        yield "it doesn't show the scenario"
    if values["artefacts"]:
        yield "it has a visible error"
    if not values["suitable"]:
        yield "it isn't suitable"
    if values["decision"] == "reject":
        yield "rejected"


def _of_own_scenarios(state: State) -> Items:
    """Returns the images that have a question."""
    kept, dropped = screened_images(state)
    dropped = [*usable_scenarios(state)[1], *dropped]
    items = []
    for item in kept:
        entry, others = _first(state, "question", item.name)
        dropped += others
        if entry is None:
            dropped.append(Dropped("question", item.name, _why_nothing(state, "question", item.name)))
        elif not entry.values["fits"]:
            dropped.append(Dropped("question", item.name, "the image doesn't show the scenario, or has an error"))
        else:
            items.append(replace(item, question=str(entry.values["question"])))
    return Items(items, dropped)


def _first(state: State, step: str, row: str) -> tuple[Entry | None, list[Dropped]]:
    """Returns the entry of a row that counts, the first person's, and those that don't."""
    entries = state.of(step, row)
    others = [Dropped(step, row, "another person's entry; the first one counts") for _ in entries[1:]]
    return (entries[0] if entries else None), others


def _why_nothing(state: State, step: str, row: str) -> str:
    """Returns why a row has no entry that counts, without what people wrote: a data card tells it."""
    if state.skipped(step, row):
        return "skipped"
    return "a model's draft that nobody confirmed" if state.by_models(step, row) else "nobody filled it in"


def items_of(state: State) -> Items:
    """Returns the images about which people write, with what they have to know."""
    return _of_own_scenarios(state) if state.config.way == SCENARIOS else _of_published(state)


def written_partitions(config: Config) -> tuple[Partition, ...]:
    """Returns the partitions whose questions and answers people write."""
    return partitions_of(config) if config.way == SCENARIOS else partitions_of(config)[-1:]


def step_of(kind: str, config: Config, partition: Partition) -> str:
    """Returns the name of a partition's step: that of the culture's own partition is the kind alone."""
    return kind if partition.code == config.language else f"{kind}_{partition.code}"


# Questions and answers, and what natives say of them


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


def text_of(state: State, step: str, row: str) -> tuple[Text | None, list[Dropped]]:
    """Returns the text of a row, or why there is none."""
    entry, dropped = _first(state, step, row)
    if entry is None:
        return None, [Dropped(step, row, _why_nothing(state, step, row))]
    values = entry.values
    if not values.get("fits", True):
        return None, [*dropped, Dropped(step, row, "the image doesn't show the scenario, or has an error")]
    written = str(values["question"]), str(values["answer"])
    drafts = {
        draft.person: (draft.values.get("question"), draft.values.get("answer")) for draft in state.by_models(step, row)
    }
    drafted_by = next((person for person, texts in drafts.items() if texts == written), "")
    return Text(
        entry.person, *written, str(values.get("gloss") or ""), f"{row}.{digest(*written)[:8]}", drafted_by
    ), dropped


def verdicts_on(state: State, step: str, text: Text) -> list[str]:
    """Returns the verdicts of natives on a text, its author's aside."""
    return [str(entry.values["verdict"]) for entry in state.of(step, text.checks) if entry.person != text.person]
