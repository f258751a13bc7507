"""Which numbers may be compared: the settings that must agree, and what to say where they don't."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import combinations

from culture_tasks.report.model import FLAG_TEXT, Flag
from culture_tasks.report.runs import Judge, Run, Settings

ByTask = Mapping[str, Settings]
"""The settings of an entrant's runs of one unit, by task."""


def differences(one: Settings, two: Settings) -> set[Flag]:
    """Returns how two runs of one task differ in what decides comparability."""
    found: set[Flag] = set()
    if _graders(one) != _graders(two):
        found.add("other_judge")
    elif _other_prompts(one.judges, two.judges):
        found.add("other_judge_prompt")
    if one.task_version != two.task_version:
        found.add("other_task_version")
    if one.prompt != two.prompt:
        found.add("other_prompt")
    if one.data != two.data:
        found.add("other_data")
    if one.decoding != two.decoding:
        found.add("other_decoding")
    if one.limit != two.limit:
        found.add("other_limit")
    return found


def _graders(settings: Settings) -> set[tuple[str, str, bool, str]]:
    return {(judge.backend, judge.model, judge.delimiters, judge.sampling) for judge in settings.judges}


def _other_prompts(one: Sequence[Judge], two: Sequence[Judge]) -> bool:
    """Whether a rubric that both used had another prompt; one that only one of them needed doesn't matter."""
    ours, theirs = _prompts(one), _prompts(two)
    return any(ours[rubric] != theirs[rubric] for rubric in ours.keys() & theirs.keys())


def _prompts(judges: Sequence[Judge]) -> dict[str, set[tuple[str, str]]]:
    found: dict[str, set[tuple[str, str]]] = {}
    for judge in judges:
        for rubric, prompt, sha256 in judge.prompts:
            found.setdefault(rubric, set()).add((prompt, sha256))
    return found


def between(one: ByTask, two: ByTask) -> set[Flag]:
    """Returns how two entrants differ on a unit, over the tasks that both ran."""
    return {flag for task in one.keys() & two.keys() for flag in differences(one[task], two[task])}


def within(settings: ByTask) -> set[Flag]:
    """Returns ``mixed_settings`` where the parts of one entrant's unit had different judges or decoding."""
    mixed = any(_graders(one) != _graders(two) or one.decoding != two.decoding for one, two in _pairs(settings))
    mixed |= any(_other_prompts(one.judges, two.judges) for one, two in _pairs(settings))
    mixed |= any(len(each.judges) > 1 for each in settings.values())
    return {"mixed_settings"} if mixed else set()


def _pairs(settings: ByTask) -> list[tuple[Settings, Settings]]:
    return list(combinations(settings.values(), 2))


def reference(entrants: Mapping[str, ByTask], weight: Mapping[str, tuple[int, str]]) -> str:
    """Returns the entrant whose settings most entrants share.

    Args:
        entrants: Settings by entrant, at least one.
        weight: Number of items and date by entrant: decides where two settings are shared by equally many.
    """

    def support(entrant: str) -> tuple[int, tuple[int, str]]:
        agreeing = sum(not between(entrants[entrant], other) for other in entrants.values())
        return agreeing, weight[entrant]

    return max(entrants, key=support)


def variation(run: Run, first: Run) -> str:
    """Returns in words what sets a run apart from another run of the same model and task."""
    parts: list[str] = []
    ours, theirs = run.settings, first.settings
    found = differences(ours, theirs)
    if "other_judge" in found:
        parts.append(f"judge: {ours.judged_by or 'unknown'}")
    if "other_limit" in found:
        parts.append(f"limit: {ours.limit:g}" if ours.limit is not None else "no limit")
    if "other_task_version" in found:
        parts.append(f"task version: {ours.task_version or 'unknown'}")
    if "other_data" in found:
        parts.append(f"data: {', '.join(ours.data) or 'unknown'}")
    if "other_decoding" in found:
        parts.append(f"decoding: {_decoding(ours.decoding)}")
    if "other_prompt" in found:
        parts.append(f"prompt: {ours.prompt or 'plain'}")
    if "other_judge_prompt" in found:
        parts.append(f"judge prompt: {', '.join(sorted({p for judge in ours.judges for _, p, _ in judge.prompts}))}")
    if run.harness != first.harness:
        parts.append(f"harness: {run.harness.replace('_', '-')}")
    if run.model_args != first.model_args:
        parts.append(f"arguments: {run.model_args or 'none'}")
    return ", ".join(parts)


def _decoding(settings: str) -> str:
    """Returns decoding settings without the quotes and braces of JSON."""
    known: dict[str, object] = json.loads(settings) if settings else {}
    shown = [name if value is True else f"{name} {value}" for name, value in known.items() if name != "repeats"]
    repeats = [f"{known['repeats']} runs"] if known.get("repeats", 1) != 1 else []
    return " ".join(shown + repeats) or "unknown"


def explain(flags: Sequence[Flag]) -> str:
    """Returns the meanings of flags as one text."""
    return "; ".join(FLAG_TEXT[flag] for flag in flags)
