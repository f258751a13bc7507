"""Which numbers may be compared: the settings that must agree, and the words for differences."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Literal

from culture_tasks.metrics.judge_bias import model_families
from culture_tasks.results.runs import Run, RunJudge, RunSettings

Flag = Literal[
    "other_judge",
    "other_settings",
    "other_data",
    "unknown_settings",
    "other_harness",
    "mixed",
    "incomplete",
    "low_coverage",
    "unjudged",
    "trained_on_test",
    "lexical_judge",
    "self_judged",
    "from_result_file",
    "own_data",
    "limited",
    "subset",
    "corrected",
]
"""What a reader must know of a cell.

The flags of :data:`NOT_COMPARABLE` mean that the cell is neither ranked nor tested against others, unless the user
asked for it. ``own_data`` isn't shown beside a paper's number.
"""

FLAG_TEXT: Mapping[Flag, str] = {
    "other_judge": "another judge, or another version of its prompt, than that of this column's other rows",
    "other_settings": "another prompt, other decoding settings or another version of the task, or a cost measured in "
    "batches: the papers measure one request at a time",
    "other_data": "another revision of the data, or another limit on the number of items",
    "unknown_settings": "its judge, prompts and data aren't known",
    "other_harness": "the same model in the other harness: shown beside its first run, and ranked once",
    "mixed": "its parts were run under settings that differ from each other, or its samples contradict the result file",
    "incomplete": "parts or items of it are missing",
    "low_coverage": "too few of the responses were scored",
    "unjudged": "responses were recorded, and not judged yet",
    "trained_on_test": "the model was trained on items of this test",
    "lexical_judge": "scored by text overlap, not by a judge",
    "self_judged": "the judge is the model itself or of its family, by their names",
    "from_result_file": "the harness's own number, from its result file",
    "own_data": "own data: not the benchmark's release",
    "limited": "of a part of the items: the run had a --limit",
    "subset": "of a designed draw of the questions; the interval is that of the score of all of them, and differences "
    "from another draw are of the two scores, without pairs",
    "corrected": "the judge's score corrected by people who rated a part of the responses",
}
"""What each flag means, in words for a legend."""

NOT_COMPARABLE: frozenset[Flag] = frozenset(FLAG_TEXT) - {
    *("lexical_judge", "self_judged", "from_result_file", "own_data", "limited", "subset", "corrected")
}
"""Flags that keep a cell out of ranks and tests."""

_FLAG_OF_SETTING: Mapping[str, Flag] = {
    "judge": "other_judge",
    "version": "other_settings",
    "prompt": "other_settings",
    "decoding": "other_settings",
    "data": "other_data",
    "limit": "other_data",
    "samples": "unknown_settings",
}
"""The flag of each setting that decides whether two runs can be compared."""

ByTask = Mapping[str, RunSettings]
"""The settings of an entrant's runs of one unit, by task."""


def differences(first: RunSettings, second: RunSettings, *, but: Collection[str] = ()) -> set[Flag]:
    """Returns the differences of two runs that decide comparability, but those of some settings, such as ``prompt``."""
    if first == second:
        return set()
    settings = {setting for setting, _ in _what_differs(first, second)}.difference(but)
    return {flag for setting, flag in _FLAG_OF_SETTING.items() if setting in settings}


def what_differs(ours: RunSettings, theirs: RunSettings) -> list[str]:
    """Returns in words how the first settings differ from the second."""
    return [words for _, words in _what_differs(ours, theirs)]


def _what_differs(ours: RunSettings, theirs: RunSettings) -> Iterator[tuple[str, str]]:
    """Yields each difference, with the setting as :data:`_FLAG_OF_SETTING` names it, or another one, and in words."""
    if ours.partial != theirs.partial:
        yield "samples", f"{'without' if ours.partial else 'with'} samples"
        ours, theirs = (replace(settings, judges=(), prompt="", data=(), partial=False) for settings in (ours, theirs))
    if is_other_judge := _graders(ours) != _graders(theirs):
        yield (
            "judge",
            f"judge: {(ours.judged_by or 'unknown') if ours.judged_by != theirs.judged_by else 'other settings'}",
        )
    if ours.limit != theirs.limit:
        yield "limit", f"limit: {ours.limit:g}" if ours.limit is not None else "no limit"
    if is_other_draw(ours, theirs):
        yield "draw", f"another draw ({ours.subset})"
    elif ours.subset != theirs.subset:
        yield "draw", f"subset: {ours.subset}" if ours.subset else "no subset"
    if ours.task_version != theirs.task_version:
        yield "version", f"task version: {ours.task_version or 'unknown'}"
    if other := _other_definition(ours, theirs):
        yield "version", f"task: another {', '.join(other[:2])}"
    if ours.data != theirs.data:
        commits = [f"{name}@{commit[:8]}" for name, commit in ours.commits if (name, commit) not in theirs.commits]
        names = commits or [name[:8] for name in ours.data if name not in theirs.data]
        yield "data", f"data: {', '.join(names[:2]) or 'unknown'}"
    if ours.decoding != theirs.decoding:
        yield "decoding", f"decoding: {_other_parts(*map(_listed, (ours.decoding, theirs.decoding))) or 'unknown'}"
    if ours.prompt != theirs.prompt:
        yield "prompt", f"prompt: {_other_parts(ours.prompt, theirs.prompt) or 'plain'}"
    if _other_template(ours, theirs):
        yield "prompt", "no chat template" if ours.chat_template == "none" else "chat template"
    elif ours.prompt == theirs.prompt and not is_other_draw(ours, theirs) and other_questions(ours, theirs):
        sha = ours.asked.sha[:8] if ours.asked else ""
        # --offset and --samples take other items
        yield ("prompt", f"prompts: {sha}") if ours.limit is None else ("limit", f"items: {sha}")
    if not is_other_judge and _other_prompts(ours.judges, theirs.judges):
        asked, others = ({name for judge in one.judges for _, name, _ in judge.prompts} for one in (ours, theirs))
        yield "judge", f"judge prompt: {', '.join(sorted(asked - others or asked)[:2])}"


def _listed(decoding: str) -> str:
    """Returns decoding settings as a list with commas."""
    return ", ".join(f"{name}={value}" for name, value in json.loads(decoding or "{}").items())


def _other_definition(first: RunSettings, second: RunSettings) -> list[str]:
    """Returns the entries of a task's configuration that differ; those of two harnesses can't be compared."""
    ours, theirs = dict(first.definition), dict(second.definition)
    if ours.get("harness") != theirs.get("harness"):
        return []
    pairs = ((name, ours.get(name, ""), theirs.get(name, "")) for name in ours | theirs)
    return [name for name, text, other in pairs if text != other and "unknown" not in (text, other)]


def _other_template(first: RunSettings, second: RunSettings) -> bool:
    """Whether one had a chat template and the other none; each model has its own, so two templates don't differ."""
    return "" not in (first.chat_template, second.chat_template) and (first.chat_template == "none") != (
        second.chat_template == "none"
    )


def other_questions(first: RunSettings, second: RunSettings) -> bool:
    """Whether the prompts of the same items were other texts; not known, so False, where they hold other templates."""
    if first.asked is None or second.asked is None or first.asked.sha == second.asked.sha:
        return False
    return first.asked.items == second.asked.items and (first.chat_template, first.data) == (
        second.chat_template,
        second.data,
    )


def is_other_draw(first: RunSettings, second: RunSettings) -> bool:
    """Whether both are of subsets by other seeds: a larger draw by the same seed holds the smaller one."""
    return bool(first.subset and second.subset) and first.seed != second.seed


def _graders(settings: RunSettings) -> set[tuple[str, str, bool, str]]:
    return {(judge.backend, judge.model, judge.delimiters, judge.sampling) for judge in settings.judges}


def _other_prompts(first: Sequence[RunJudge], second: Sequence[RunJudge]) -> bool:
    """Whether a rubric that both used had another prompt; one that only one of them needed doesn't matter."""
    ours, theirs = ({prompt for judge in judges for prompt in judge.prompts} for judges in (first, second))
    shared = {rubric for rubric, _, _ in ours} & {rubric for rubric, _, _ in theirs}
    return any(rubric in shared for rubric, _, _ in ours ^ theirs)


def between(first: ByTask, second: ByTask) -> set[Flag]:
    """Returns how two entrants differ on a unit, over the tasks that both ran."""
    return {flag for task in first.keys() & second.keys() for flag in differences(first[task], second[task])}


def within(settings: ByTask) -> set[Flag]:
    """Returns ``mixed`` where parts of one entrant's unit had other judges, decoding or chat templates."""
    pairs = [(first, second) for first, second in combinations(settings.values(), 2) if first.partial == second.partial]
    is_mixed = any(
        _graders(first) != _graders(second)
        or first.decoding != second.decoding
        or _other_template(first, second)
        or _other_prompts(first.judges, second.judges)
        for first, second in pairs
    )
    return {"mixed"} if is_mixed or any(len(part.judges) > 1 for part in settings.values()) else set()


def reference(entrants: Mapping[str, ByTask], weight: Mapping[str, tuple[int, str]]) -> str:
    """Returns the entrant whose settings most entrants share; where two are equal, by number of items and date."""
    sizes = Counter(tuple(settings.items()) for settings in entrants.values())
    support = {
        settings: sum(size for other, size in sizes.items() if not between(dict(settings), dict(other)))
        for settings in sizes
    }
    return max(entrants, key=lambda entrant: (support[tuple(entrants[entrant].items())], weight[entrant]))


def variation(run: Run, first: Run) -> str:
    """Returns in words how a run differs from another run of the same model and task."""
    parts, template = what_differs(run.settings, first.settings), run.settings.chat_template
    if template != first.settings.chat_template and run.harness == first.harness:
        parts.append("no chat template" if template == "none" else f"chat template: {template or 'unknown'}")
    if run.harness != first.harness:
        parts.append(f"harness: {run.harness.replace('_', '-')}")
    if arguments := _other_parts(run.model_args, first.model_args):
        parts.append(f"arguments: {arguments}")
    return ", ".join(dict.fromkeys(parts))


def _other_parts(ours: str, theirs: str) -> str:
    """Returns the parts of a list with commas that the other list lacks, and the names that only the other has."""
    our_parts, their_parts = ([part for part in text.split(", ") if part] for text in (ours, theirs))
    names = {part.partition("=")[0] for part in our_parts}
    absent = [part.partition("=")[0] for part in their_parts if "=" in part and part.partition("=")[0] not in names]
    return ", ".join([*(part for part in our_parts if part not in their_parts), *(f"no {name}" for name in absent)])


def explain(flags: Sequence[Flag]) -> str:
    """Returns the meanings of flags as one text."""
    return "; ".join(FLAG_TEXT[flag] for flag in flags)


def judged_by_itself(judges: Sequence[RunJudge], names: Sequence[str]) -> bool:
    """Whether some judge is the model that it graded, or of its family, by the model's names."""
    ours = {_bare(name) for name in names if name}
    asked = [judge.model for judge in judges if judge.backend not in ("lexical", "none")]
    # The judge of a harness is named by its arguments: pretrained=Qwen/Qwen2.5-7B,dtype=auto.
    theirs = {part.rpartition("=")[2] for model in asked for part in model.split(",")}
    families, judge_families = (frozenset().union(*map(model_families, side)) for side in (names, theirs))
    return bool(families & judge_families or ours & {_bare(name) for name in theirs} - {""})


def _bare(name: str) -> str:
    """Returns the last part of a model's name: without organization or folder, and without the date of a version."""
    return re.sub(r"[-@]\d{4}-?\d\d-?\d\d$", "", name.rstrip("/").rpartition("/")[2].casefold())
