"""Which numbers may be compared: the settings that must agree, and what to say where they don't."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Literal

from culture_tasks.results.runs import Grader, RunSettings, TaskRun

Flag = Literal[
    "other_judge",
    "other_judge_prompt",
    "other_task_version",
    "other_prompt",
    "other_data",
    "other_decoding",
    "other_limit",
    "low_coverage",
    "lexical_judge",
    "unjudged",
    "mixed_settings",
    "incomplete",
    "from_result_file",
    "in_batches",
    "published",
    "other_harness",
    "trained_on_test",
    "unlike_its_file",
    "unknown_settings",
    "own_data",
    "subset",
    "corrected",
    "reported",
    "control_variates",
]
"""What a reader must know of a cell.

The flags of :data:`NOT_COMPARABLE` mean that the cell is neither ranked nor tested against others, unless the user
asked for it. ``lexical_judge`` is a score by text overlap, ``from_result_file`` a number that a harness worked out,
``published`` a paper's own, ``reported`` one of a log of others, and ``own_data`` isn't shown beside a paper's number.
"""

FLAG_TEXT: Mapping[Flag, str] = {
    "other_judge": "a judge other than that of this column's other rows",
    "other_judge_prompt": "another version of the judge's prompt",
    "other_task_version": "another version of the task",
    "other_prompt": "another prompt variant",
    "other_data": "another revision of the data",
    "other_decoding": "other decoding settings",
    "other_limit": "another limit on the number of items",
    "low_coverage": "too few of the responses were scored",
    "lexical_judge": "scored by text overlap, not by a judge",
    "unjudged": "responses were recorded, and not judged yet",
    "mixed_settings": "its parts were run under settings that differ from each other",
    "incomplete": "parts or items of it are missing",
    "from_result_file": "the harness's own number, from its result file",
    "in_batches": "measured in batches: the papers measure one request at a time",
    "published": "published by the paper, with the paper's own judge",
    "other_harness": "the same model in the other harness: shown beside its first run, and ranked once",
    "trained_on_test": "the model was trained on items of this test",
    "unlike_its_file": "the result file has another number than the samples beside it",
    "unknown_settings": "its judge, prompts and data aren't known",
    "own_data": "own data: not the benchmark's release",
    "subset": "of a designed draw of the questions; the interval is that of the score of all of them",
    "corrected": "the judge's score corrected by people who rated a part of the responses",
    "reported": "reported by others, and not measured here",
    "control_variates": "made more certain by other models' scores of all questions",
}
"""What each flag means, in words for a legend."""

NOT_COMPARABLE: frozenset[Flag] = frozenset(
    flag for flag in FLAG_TEXT if flag.startswith("other_") or flag in {"low_coverage", "mixed_settings", "incomplete"}
) | {"unjudged", "in_batches", "trained_on_test", "unlike_its_file", "unknown_settings"}
"""Flags that keep a cell out of ranks and tests."""

ByTask = Mapping[str, RunSettings]
"""The settings of an entrant's runs of one unit, by task."""


def differences(one: RunSettings, two: RunSettings) -> set[Flag]:
    """Returns how two runs of one task differ in what decides comparability."""
    return {flag for flag, _ in _flags_and_words(one, two) if flag is not None}


def what_differs(ours: RunSettings, theirs: RunSettings) -> list[str]:
    """Returns in words what sets settings apart from others: what differs, and nothing that both have."""
    return [words for _, words in _flags_and_words(ours, theirs)]


def _flags_and_words(ours: RunSettings, theirs: RunSettings) -> Iterator[tuple[Flag | None, str]]:
    """Yields what sets settings apart from others: the flag, None if it doesn't decide comparability, and words."""
    if ours.partial != theirs.partial:
        yield "unknown_settings", f"{'without' if ours.partial else 'with'} samples"
        ours, theirs = (replace(each, judges=(), prompt="", data=(), partial=False) for each in (ours, theirs))
    is_other_judge = _graders(ours) != _graders(theirs)
    if is_other_judge:
        yield "other_judge", _judge(ours, theirs)
    if ours.limit != theirs.limit:
        yield "other_limit", f"limit: {ours.limit:g}" if ours.limit is not None else "no limit"
    if ours.subset != theirs.subset:
        yield None, f"subset: {ours.subset}" if ours.subset else "no subset"
    if ours.task_version != theirs.task_version:
        yield "other_task_version", f"task version: {ours.task_version or 'unknown'}"
    if ours.data != theirs.data:
        commits = [f"{name}@{commit[:8]}" for name, commit in ours.commits if (name, commit) not in theirs.commits]
        names = commits or [name[:8] for name in ours.data if name not in theirs.data]
        yield "other_data", f"data: {_first_of(names)}"
    if ours.decoding != theirs.decoding:
        yield "other_decoding", f"decoding: {_decoding(ours.decoding, theirs.decoding)}"
    if ours.prompt != theirs.prompt:
        yield "other_prompt", f"prompt: {_other_parts(ours.prompt, theirs.prompt) or 'plain'}"
    if _other_template(ours, theirs):
        yield "other_prompt", "no chat template" if ours.chat_template == "none" else "chat template"
    if ours.asked is not None and other_questions(ours, theirs):
        yield "other_prompt", f"prompts: {ours.asked.sha[:8]}"
    if not is_other_judge and _other_prompts(ours.judges, theirs.judges):
        own, others = ([name for judge in each.judges for _, name, _ in judge.prompts] for each in (ours, theirs))
        yield "other_judge_prompt", f"judge prompt: {_first_of([name for name in own if name not in others] or own)}"


def _other_template(one: RunSettings, two: RunSettings) -> bool:
    """Whether one had a chat template and the other none; every model has its own, so which one doesn't matter."""
    return "" not in (one.chat_template, two.chat_template) and (one.chat_template == "none") != (
        two.chat_template == "none"
    )


def other_questions(one: RunSettings, two: RunSettings) -> bool:
    """Whether the prompts of the same items were other texts; not known, so False, where they hold other templates."""
    if one.asked is None or two.asked is None or one.asked.sha == two.asked.sha:
        return False
    ours, theirs = ((each.chat_template, each.data, each.asked._replace(sha="")) for each in (one, two) if each.asked)
    return ours == theirs


def _graders(settings: RunSettings) -> set[tuple[str, str, bool, str]]:
    return {(judge.backend, judge.model, judge.delimiters, judge.sampling) for judge in settings.judges}


def _other_prompts(one: Sequence[Grader], two: Sequence[Grader]) -> bool:
    """Whether a rubric that both used had another prompt; one that only one of them needed doesn't matter."""
    ours, theirs = ({prompt for judge in judges for prompt in judge.prompts} for judges in (one, two))
    shared = {rubric for rubric, _, _ in ours} & {rubric for rubric, _, _ in theirs}
    return any(rubric in shared for rubric, _, _ in ours ^ theirs)


def between(one: ByTask, two: ByTask) -> set[Flag]:
    """Returns how two entrants differ on a unit, over the tasks that both ran."""
    return {flag for task in one.keys() & two.keys() for flag in differences(one[task], two[task])}


def within(settings: ByTask) -> set[Flag]:
    """Returns ``mixed_settings`` where parts of one entrant's unit had other judges, decoding or chat templates."""
    pairs = [(one, two) for one, two in combinations(settings.values(), 2) if one.partial == two.partial]
    is_mixed = any(
        _graders(one) != _graders(two)
        or one.decoding != two.decoding
        or _other_template(one, two)
        or _other_prompts(one.judges, two.judges)
        for one, two in pairs
    )
    return {"mixed_settings"} if is_mixed or any(len(each.judges) > 1 for each in settings.values()) else set()


def reference(entrants: Mapping[str, ByTask], weight: Mapping[str, tuple[int, str]]) -> str:
    """Returns the entrant whose settings most entrants share; where two are equal, by number of items and date."""

    def support(entrant: str) -> tuple[int, tuple[int, str]]:
        agreeing = sum(not between(entrants[entrant], other) for other in entrants.values())
        return agreeing, weight[entrant]

    return max(entrants, key=support)


def variation(run: TaskRun, first: TaskRun) -> str:
    """Returns in words what sets a run apart from another run of the same model and task."""
    parts, template = what_differs(run.settings, first.settings), run.settings.chat_template
    if template != first.settings.chat_template and run.harness == first.harness:
        parts.append("no chat template" if template == "none" else f"chat template: {template or 'unknown'}")
    if run.harness != first.harness:
        parts.append(f"harness: {run.harness.replace('_', '-')}")
    if arguments := _other_parts(run.model_args, first.model_args):
        parts.append(f"arguments: {arguments}")
    return ", ".join(dict.fromkeys(parts))


def _judge(ours: RunSettings, theirs: RunSettings) -> str:
    """Returns the judge if it differs, else the settings of the judge that differ."""
    if ours.judged_by != theirs.judged_by or len(ours.judges) != 1 or len(theirs.judges) != 1:
        return f"judge: {ours.judged_by or 'unknown'}"
    [one], [two] = ours.judges, theirs.judges
    if one.delimiters != two.delimiters:
        return f"judge: {'with' if one.delimiters else 'without'} delimiters"
    if one.sampling != two.sampling:
        return f"judge: {_decoding(one.sampling, two.sampling)}"
    return f"judge: {one.model} by {one.backend}"


def _first_of(names: Sequence[str]) -> str:
    first, *more = dict.fromkeys(names) or ("unknown",)
    return f"{first} and more" if more else first


def _other_parts(ours: str, theirs: str) -> str:
    """Returns the parts of a list with commas that the other list lacks, and the names that only the other has."""
    own, others = ([part for part in text.split(", ") if part] for text in (ours, theirs))
    names = {part.partition("=")[0] for part in own}
    absent = [part.partition("=")[0] for part in others if "=" in part and part.partition("=")[0] not in names]
    return ", ".join([*(part for part in own if part not in others), *(f"no {name}" for name in absent)])


def _decoding(ours: str, theirs: str) -> str:
    """Returns the settings that differ, without the quotes and braces of JSON."""
    own, others = (json.loads(text) if text else {} for text in (ours, theirs))
    if not own:
        return "unknown"
    parts: list[str] = []
    for name, value in own.items():
        if name not in others or others[name] != value:
            shown = " ".join(map(str, value)) if isinstance(value, list) else value
            runs = f"{value} runs" if name == "repeats" else f"{name} {shown}"
            parts.append(name if value is True else runs)
    return " ".join([*parts, *(f"no {name}" for name in others if name not in own)]) or "unknown"


def explain(flags: Sequence[Flag]) -> str:
    """Returns the meanings of flags as one text."""
    return "; ".join(FLAG_TEXT[flag] for flag in flags)
