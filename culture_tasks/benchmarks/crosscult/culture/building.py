"""Makes raw cases of a project's entries."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from culture_tasks.benchmarks.crosscult.benchmark import open_release
from culture_tasks.benchmarks.crosscult.culture.agreement import agreement_on
from culture_tasks.benchmarks.crosscult.culture.entries import (
    TABLE,
    Item,
    Text,
    items_of,
    step_of,
    text_of,
    usable_scenarios,
    verdicts_on,
    written_partitions,
)
from culture_tasks.benchmarks.crosscult.culture.options import FEWEST, SCENARIOS, edition_facts, partitions_of
from culture_tasks.benchmarks.crosscult.culture.steps import HOLDS, VERDICTS
from culture_tasks.benchmarks.crosscult.draw import split_scenarios
from culture_tasks.benchmarks.crosscult.editions import PAPER
from culture_tasks.benchmarks.crosscult.vocabulary import Part
from culture_tasks.benchmarks.culture_rows import check_drafts, comparable
from culture_tasks.benchmarks.cultures import Built, Config, Dropped, Figure, State
from culture_tasks.data.releases import released_questions
from culture_tasks.data.sources import local_file
from culture_tasks.errors import DataError


@dataclass
class _Case:
    """A case whose partitions are all accepted."""

    item: Item
    texts: Mapping[str, Text]
    part: str = ""

    @property
    def image(self) -> str:
        """The name of its image in the built culture."""
        suffix = Path(self.item.image).suffix
        return self.item.name if self.item.name.endswith(suffix) else f"{self.item.name}{suffix}"


def build(state: State) -> Built:
    """Returns the raw cases that the entries make; raises DataError where there are too few."""
    config = state.config
    cases, dropped = _accepted(state)
    cases, leaks, near = _without_leaks(state, cases)
    dropped += leaks
    for figure in _failures(state):
        raise DataError(
            f"culture: {figure.name} is {figure.value:.2f}, below {figure.floor}. Settle what the checkers understand "
            "differently and check again, or lower 'least_alpha' and say why in the card."
        )
    parts = _parts(config, [case.item for case in cases])
    for case in cases:
        case.part = parts[case.item.scenario]
    cases, small = _without_small(cases)
    dropped += small
    if not any(case.part == "single" for case in cases):
        raise DataError(
            f"culture: no case is left for the single-insert test. Expected at least {FEWEST} scenarios with "
            f"{FEWEST} accepted cases each; `culture-tasks culture agree` says what is missing."
        )
    texts = [text for case in cases for text in case.texts.values()]
    drafts = Counter(text.drafted_by for text in texts if text.drafted_by)
    check_drafts(drafts.total(), len(texts), config.options)
    names = {case.item.name for case in cases}
    dropped += _left_over(state, names, dropped)
    marks = []
    if drafts:
        models = ", ".join(model.partition(":")[2] for model in sorted(drafts))
        marks.append(
            f"{drafts.total()} of {len(texts)} answers are drafts of a model ({models}) that natives confirmed without "
            "a change; don't compare this model by them."
        )
    if near:
        marks.append(f"{near} questions are much like ones of the published cases.")
    scenarios = {case.item.scenario: case.part for case in cases}
    counts = {"cases": len(cases), "scenarios": len(scenarios)}
    counts |= {f"scenarios for {part}": number for part, number in sorted(Counter(scenarios.values()).items())}
    counts |= {"answers by people": len(texts), "of them unchanged drafts": drafts.total()}
    facts = edition_facts(config, set(scenarios.values()))
    cases.sort(key=lambda case: (case.item.scenario, case.item.name))
    return Built(
        tables={f"{TABLE}.json": [_row(config, case) for case in cases]},
        images={case.image: case.item.image for case in cases},
        dropped=dropped,
        counts=counts,
        marks=marks,
        facts=facts,
    )


def _row(config: Config, case: _Case) -> dict[str, Any]:
    item = case.item
    row = {"id": item.name, "scenario": item.scenario, "topic": item.topic, "split": case.part, "image": case.image}
    if item.description:
        row["description"] = item.description
    for partition in partitions_of(config):
        if text := case.texts.get(partition.code):
            row |= {partition.question: text.question, partition.answer: text.answer}
            row |= {partition.gloss: text.gloss} if partition.gloss and text.gloss else {}
        else:
            sample = item.samples[partition.code]
            row |= {partition.question: sample.question, partition.answer: sample.answer}
    return row


def _accepted(state: State) -> tuple[list[_Case], list[Dropped]]:
    """Returns the cases whose answers natives accept in each partition, and why the others fall out."""
    config = state.config
    items, before = items_of(state)
    dropped = list(before)
    cases = []
    for item in items:
        texts = {}
        reasons: list[Dropped] = []
        if not item.image:
            reasons.append(Dropped("answer", item.name, "its image isn't in the project"))
        for partition in written_partitions(config):
            text, others = text_of(state, step_of("answer", config, partition), item.name)
            if text is None:
                reasons += others
                continue
            dropped += others
            verdicts = verdicts_on(state, step_of("check", config, partition), text)
            if verdicts.count(HOLDS) < config.options["agree"]:
                said = ", ".join(f"{VERDICTS[name]}: {number}" for name, number in Counter(verdicts).items())
                reason = f"{verdicts.count(HOLDS)} of the {config.options['agree']} natives needed say that it holds"
                reasons.append(
                    Dropped(step_of("check", config, partition), item.name, f"{reason} ({said or 'nobody checked it'})")
                )
            texts[partition.code] = text
        dropped += reasons
        if not reasons:
            cases.append(_Case(item, texts))
    return cases, dropped


def _failures(state: State) -> Iterator[Figure]:
    for partition in written_partitions(state.config):
        yield from (figure for figure in agreement_on(state, partition) if figure.passes is False)


def _without_leaks(state: State, cases: list[_Case]) -> tuple[list[_Case], list[Dropped], int]:
    """Leaves out cases whose question is a published one, word by word, and counts those that are much like one."""
    if state.config.way != SCENARIOS:  # whose questions have the meaning of published ones
        return cases, [], 0
    from culture_tasks.metrics.near_duplicates import near_duplicates

    published: dict[str, list[str]] = {}
    if state.data_folder is not None and local_file(PAPER.source, state.data_folder):
        for raw in open_release(state.data_folder).raw.cases:
            for code, sample in raw.samples.items():
                published.setdefault(code, []).append(sample.question)
    same = {code: set(map(comparable, questions)) for code, questions in published.items()}
    left, dropped = [], []
    for case in cases:
        questions = {code: text.question for code, text in case.texts.items()}
        digests = {hashlib.sha256(question.encode()).hexdigest()[:16] for question in questions.values()}
        known = any(comparable(question) in same.get(code, ()) for code, question in questions.items())
        if known or digests & released_questions():
            dropped.append(Dropped("question", case.item.name, "its question is one of the published data"))
        else:
            left.append(case)
    near = {
        alike.first
        for code, questions in published.items()
        for alike in near_duplicates(
            [case.texts[code].question if code in case.texts else "" for case in left], questions
        )
    }
    return left, dropped, len(near)


def _parts(config: Config, items: Sequence[Item]) -> dict[str, str]:
    """Returns the part of each scenario: the published one, or drawn so that each part has its share of every topic."""
    if config.way != SCENARIOS:
        return {item.scenario: str(item.part) for item in items}
    sizes = Counter(item.scenario for item in items)
    topics = {item.scenario: item.topic for item in items if sizes[item.scenario] >= FEWEST}
    quotas: dict[Part, int] = {
        "sequential": config.options["sequential_scenarios"],
        "train": config.options["train_scenarios"],
    }
    if sum(quotas.values()) > len(topics):
        raise DataError(
            f"culture: {len(topics)} scenarios have {FEWEST} accepted cases, and 'sequential_scenarios' and "
            f"'train_scenarios' ask for {sum(quotas.values())}. Lower these, or make further cases."
        )
    drawn = split_scenarios(topics, quotas, random.Random(f"{config.seed}-split"))  # noqa: S311
    return {scenario: drawn.get(scenario, "single") for scenario in sizes}


def _without_small(cases: list[_Case]) -> tuple[list[_Case], list[Dropped]]:
    """Leaves out scenarios with one case, and then parts with one scenario."""
    dropped = []
    sizes = Counter(case.item.scenario for case in cases)
    left = [case for case in cases if sizes[case.item.scenario] >= FEWEST]
    parts = Counter({case.item.scenario: case.part for case in left}.values())
    final = [case for case in left if parts[case.part] >= FEWEST]
    kept = {case.item.name for case in final}
    for case in cases:
        if case.item.name not in kept:
            alone = sizes[case.item.scenario] < FEWEST
            reason = "the only case of its scenario" if alone else f"its scenario is the only one for {case.part}"
            dropped.append(Dropped("build", case.item.name, reason))
    return final, dropped


def _left_over(state: State, names: set[str], dropped: Sequence[Dropped]) -> list[Dropped]:
    """Returns the rows with an entry that neither became a case nor have a reason yet."""
    known = names | {each.row for each in dropped}
    left = []
    if state.config.way == SCENARIOS:
        used = {name.partition(".")[0] for name in names}
        unused = [scenario.row for scenario in usable_scenarios(state)[0] if scenario.row not in used]
        left += [Dropped("scenario", row, "no case of it is left") for row in unused]
        known |= {*used, *unused}
    steps = ["scenario", "screen", "question"]
    steps += [step_of("answer", state.config, partition) for partition in written_partitions(state.config)]
    for step in steps:
        for row in state.entries.get(step, {}):
            if row not in known:
                known.add(row)
                left.append(Dropped(step, row, "no row of the project any more"))
    return left
