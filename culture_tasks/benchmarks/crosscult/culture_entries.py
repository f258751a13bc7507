"""The decisions of a group that makes a further culture, the images that it writes about, and its texts."""

from __future__ import annotations

import random
import re
from abc import ABC
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from culture_tasks.benchmarks.crosscult.benchmark import open_release
from culture_tasks.benchmarks.crosscult.editions import PAPER, SCENARIOS, Partition
from culture_tasks.benchmarks.crosscult.raw_cases import QuestionAnswer
from culture_tasks.benchmarks.crosscult.vocabulary import TOPIC_NAMES, Topic
from culture_tasks.benchmarks.culture_forms import Config, Entry, SheetRow, State
from culture_tasks.benchmarks.culture_rows import QuestionWork, digest
from culture_tasks.data.images import image_key
from culture_tasks.errors import DataError

FEWEST = 2
"""Cases of a scenario, and scenarios of a part: generality and locality need another one."""

_CONTRAST = re.compile(r"([a-z]{2,3})-([A-Z]{2}|arab)")  # a partition that the paper doesn't have, such as ja-JP


def check_options(config: Config) -> None:
    """Raises DataError for an option whose value makes no sense."""
    options = config.options
    for name in ("train_scenarios", "sequential_scenarios"):
        if 0 != options.get(name, 0) < FEWEST:
            raise _refusal(name, options[name], f"0, or at least {FEWEST}")
    if options["agree"] > options["checkers"]:
        raise _refusal("agree", options["agree"], f"at most as many as 'checkers', {options['checkers']}")
    if "single" not in options.get("parts", ("single",)):
        raise _refusal("parts", options["parts"], "'single' among them")
    edition_facts(config, ())


def partitions_of(config: Config) -> tuple[Partition, ...]:
    """Returns the partitions of a culture, its own last; raises DataError for an option that names none."""
    systems = {}
    for line in config.options["system_prompts"]:
        code, _, text = (part.strip() for part in line.partition(":"))
        if not text:
            raise _refusal("system_prompts", line, "a language and its prompt, such as 'ko: …'")
        systems[code] = text
    partitions = []
    for contrast in config.options["contrasts"]:
        if contrast in PAPER.codes:
            partitions.append(PAPER[contrast])
        elif match := _CONTRAST.fullmatch(contrast):
            partitions.append(_partition(match[1], match[2], match[2].lower(), "contrasts"))
        else:
            expected = f"{', '.join(PAPER.codes)}, or a language and a country such as 'ja-JP'"
            raise _refusal("contrasts", contrast, expected)
    contrasts = {partition.code: partition for partition in partitions if partition.code != config.language}
    if not contrasts:
        raise _refusal("contrasts", list(config.options["contrasts"]), "a partition in another language")
    home = _partition(config.language, config.place, config.name, "language")
    partitions = [*contrasts.values(), home]
    return tuple(replace(partition, system=systems.get(partition.code, "")) for partition in partitions)


def partitions_to_write(config: Config) -> tuple[Partition, ...]:
    """Returns the partitions whose questions and answers people write, the culture's own first."""
    partitions = partitions_of(config)[::-1]
    return partitions if config.way == SCENARIOS else partitions[:1]


def _partition(code: str, country: str, name: str, option: str) -> Partition:
    from culture_tasks.vocabulary import language, place

    try:
        entry = language(code)
        place(country)
    except (KeyError, LookupError):
        raise _refusal(option, f"{code}-{country}", "codes of a language (ISO 639) and a country (ISO 3166)") from None
    return Partition(code=code, language=entry.name, place=country, name=name)


def _refusal(option: str, value: object, expected: str) -> DataError:
    return DataError(f"culture.toml, option {option!r}: found {value!r:.80}. Expected {expected}. Correct it there.")


def edition_facts(config: Config, parts: Iterable[str]) -> dict[str, Any]:
    """Returns the facts that the benchmark needs of a culture whose cases belong to some parts."""
    partitions = partitions_of(config)
    codes = [partition.code for partition in partitions]
    targets = list(config.options["targets"]) or [config.language]
    if unknown := [code for code in targets if code not in codes]:
        raise _refusal("targets", unknown[0], f"some of {', '.join(codes)}")
    chains = [chain.split("-") for chain in config.options["chains"]] or [codes]
    for chain in chains:
        if len(chain) < 2 or len(set(chain)) < len(chain) or not set(chain) <= set(codes):
            raise _refusal("chains", "-".join(chain), f"two or more of {', '.join(codes)}, each once, with '-' between")
    return {
        "partitions": [asdict(partition) for partition in partitions],
        "targets": targets,
        "orders": chains if "sequential" in parts else [],
        "seed": config.seed,
    }


# Images and texts

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An image with a scenario, of which a case may come; its name is that of its row in each step."""

    name: str
    scenario: str
    topic: Topic
    description: str
    image: str = ""
    sheet: Mapping[str, Any] = field(default_factory=dict)  # of the scenario, where it is the group's own
    question: str = ""  # in English, where the group asks it
    part: str = ""  # of the data, as soon as that is known
    samples: Mapping[str, QuestionAnswer] = field(default_factory=dict)  # published ones, by partition
    texts: Mapping[str, Entry] = field(default_factory=dict)  # what natives accept, by partition

    def row(self, also: Mapping[str, str], **fields: Any) -> SheetRow:
        """Returns a row in which it is shown, with further texts."""
        facts = {"Scenario": self.scenario, "Topic": TOPIC_NAMES[self.topic], "Description": self.description, **also}
        facts = {label: text for label, text in facts.items() if text}
        return SheetRow(**{"name": self.name, **fields}, facts=facts, image=self.image, group=row_name(self.scenario))


def row_name(text: str) -> str:
    """Returns a name for a row that is the same whenever the text is."""
    if _SAFE.fullmatch(text):
        return text
    readable = _UNSAFE.sub("-", text)[:40].strip("-") or "row"
    return f"{readable}.{digest(text)[:8]}"


def check_of(text: Entry) -> str:
    """Returns the row in which a text is checked; a changed text is another row."""
    return f"{text.row}.{digest(*_question_and_answer(text))[:8]}"


def drafter_of(state: State, text: Entry) -> str:
    """Returns the model whose draft a text is, word by word; empty where people wrote or changed it."""
    drafts = state.model_entries(text.step, text.row)
    return next((draft.person for draft in drafts if _question_and_answer(draft) == _question_and_answer(text)), "")


def _question_and_answer(text: Entry) -> tuple[Any, Any]:
    return text.values.get("question"), text.values.get("answer")


def step_of(kind: str, config: Config, partition: Partition) -> str:
    """Returns the name of a partition's step: that of the culture's own partition is the kind alone."""
    return kind if partition.code == config.language else f"{kind}_{partition.code}"


def published_items(state: State) -> dict[str, Item]:
    """Returns the published cases that get the new partition, by id."""
    release = open_release(state.data_folder)
    images = {Path(name).stem: name for name in state.images}
    contrasts = [partition.code for partition in partitions_of(state.config)[:-1]]
    by_scenario: dict[str, list[str]] = {}
    for identifier in sorted(release.raw.cases_by_id):
        by_scenario.setdefault(release.raw.cases_by_id[identifier].scenario, []).append(identifier)
    items = {}
    for scenario, ids in sorted(by_scenario.items()):
        if release.draw.split[scenario] not in state.config.options["parts"]:
            continue
        rng = random.Random(f"{state.config.seed}-cases-{scenario}")  # noqa: S311
        for identifier in sorted(rng.sample(ids, min(state.config.options["cases"], len(ids)))):
            case = release.raw.cases_by_id[identifier]
            items[identifier] = Item(
                name=row_name(identifier),
                scenario=scenario,
                topic=cast("Topic", case.topic),
                description=case.description,
                image=images.get(row_name(identifier), ""),
                part=release.draw.split[scenario],
                samples={code: case.samples[code] for code in contrasts},
            )
    return items


class CrossCultEntries(QuestionWork, ABC):
    """The usable entries of a project."""

    def blank_sheets(self) -> list[SheetRow]:
        """Returns a row for each scenario that the group wants."""
        number = self.options.get("scenarios", 0)
        return [
            SheetRow(name=f"s{place:02}", facts={"Scenario": f"{place} of {number}"}) for place in range(1, number + 1)
        ]

    @cached_property
    def sheets(self) -> dict[str, Mapping[str, Any]]:
        """The usable sheets of scenarios, by row."""
        usable: dict[str, Mapping[str, Any]] = {}  # none where the cases are published
        stances = [f"stance_{partition.code}" for partition in partitions_of(self.config)]
        entries = self.state.entries.get("scenario", {})
        for row in self.blank_sheets():
            entry = self._first("scenario", row.name) if row.name in entries else None
            if entry is None:
                continue
            values = entry.values
            if same := [name for name, sheet in usable.items() if sheet["name"] == values["name"]]:
                self.drop("scenario", row.name, f"{same[0]} has the same name {values['name']!r}")
            elif len({values.get(stance) for stance in stances}) == 1:
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
            fields = {"scenario": sheet["name"], "topic": sheet["topic"], "description": sheet["description"]}
            items.append(Item(name=name, image=image, sheet=sheet, **fields))
        return items

    @cached_property
    def screened(self) -> list[Item]:
        """The images that everybody who looks at them keeps."""
        items = []
        for item in self.images:
            looks = self.state.entries_of("screen", item.name)
            reasons = [
                reason for look in looks for (name, value), reason in _REJECTED.items() if look.values[name] == value
            ]
            if not reasons and len(looks) < self.options["screeners"]:
                reasons = [self._why_nothing("screen", item.name)]
            if reasons:
                self.drop("screen", item.name, "; ".join(dict.fromkeys(reasons)))
            else:
                items.append(item)
        return items

    @cached_property
    def items(self) -> list[Item]:
        """The images about which natives write, with what they have to know."""
        if self.config.way != SCENARIOS:
            return list(published_items(self.state).values())
        questions = ((item, self._first("question", item.name)) for item in self.screened)
        return [replace(item, question=entry.values["question"]) for item, entry in questions if entry]

    def text(self, partition: Partition, row: str) -> Entry | None:
        """Returns the entry with a native's question and answer; None for nothing that is usable."""
        return self._first(step_of("answer", self.config, partition), row)

    def verdicts(self, partition: Partition, text: Entry) -> list[str]:
        """Returns the verdicts of natives on a text, its author's aside."""
        entries = self.state.entries_of(step_of("check", self.config, partition), check_of(text))
        return [entry.values["verdict"] for entry in entries if entry.person != text.person]

    def accepted(self) -> list[Item]:
        """Returns the images with a text that natives accept in each partition that is written."""
        partitions = partitions_to_write(self.config)
        items = []
        for item in self.items:
            texts = {
                partition.code: text for partition in partitions if (text := self._accepted_text(partition, item.name))
            }
            if not item.image:
                self.drop("answer", item.name, "its image isn't in the project")
            elif len(texts) == len(partitions):
                items.append(replace(item, texts=texts))
        return items

    def _accepted_text(self, partition: Partition, row: str) -> Entry | None:
        if (text := self.text(partition, row)) is None:
            return None
        verdicts, quorum = Counter(self.verdicts(partition, text)), self.options["agree"]
        if verdicts[HOLDS] >= quorum:
            return text
        tally = ", ".join(f"{VERDICTS[name]}: {number}" for name, number in verdicts.items() if number)
        reason = f"{verdicts[HOLDS]} of the {quorum} natives needed say that it holds ({tally or 'nobody checked it'})"
        self.drop(step_of("check", self.config, partition), row, reason)
        return None

    def _first(self, step: str, row: str) -> Entry | None:
        """Returns the entry of a row that counts, the first person's; None where there is none, or the image is bad."""
        entries: Sequence[Entry] = self.state.entries_of(step, row)
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
        if self.state.skips(step, row):
            return "skipped"
        return "a model's draft that nobody confirmed" if self.state.model_entries(step, row) else "nobody filled it in"
