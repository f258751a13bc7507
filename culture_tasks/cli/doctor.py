"""``culture-tasks doctor``: what a run needs of this machine, and what to do where something is missing.

Nothing is downloaded or written, and a judge is asked one question at most. A look that fails is a finding, too.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from typing import Any

from packaging.requirements import Requirement

from culture_tasks import __version__
from culture_tasks.benchmarks.interface import HARNESSES, Benchmark, Harness, Tag
from culture_tasks.benchmarks.registry import (
    benchmarks,
    check_revisions,
    entries,
    in_harness,
    rubrics,
    task_file,
    task_folder,
    tasks_below,
)
from culture_tasks.cli.options import AddParser, add_json, show_findings, with_progress
from culture_tasks.data.tables import availability
from culture_tasks.errors import JudgeNotConfiguredError, SettingsError
from culture_tasks.harness.plug_ins import plug_in_problems
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.judges.selection import make_judge, spec_for
from culture_tasks.selftest.findings import Finding, finding_of, gpus
from culture_tasks.settings import Settings, settings_file

_PROJECT = "culture-tasks"
_SHOWN = ("lm-eval", "lmms-eval", "torch", "transformers", "datasets", "vllm")
_SAMPLE = JudgeItem("What is the capital of Japan?", ("Tokyo",), "Tokyo", language="English")
_NO_JUDGE = (
    "Set OPENAI_API_KEY for the judges of the papers, CULTURE_JUDGE for another one, or CULTURE_JUDGE=none to record "
    "the responses and grade them later. Tasks that a rule grades, such as culturalbench_easy, need none."
)
_NO_GPU = (
    "On a CPU, a model of 0.5B answers 60 short questions in minutes: --device cpu in lm-eval, device=cpu in the "
    "--model_args of lmms-eval. Larger ones answer behind an API: local-chat-completions, async_openai."
)

_DESCRIPTION = """\
Looks at packages, GPU, harnesses, judge and data. The judge is asked one question, as before a run. Nothing is
downloaded.
Exit status 1: something has to be fixed.
"""


def register(add_parser: AddParser) -> None:
    """Adds the command."""
    parser = add_parser(description=_DESCRIPTION)
    parser.add_argument("--no-judge", action="store_true", help="don't ask the judge, which may cost something")
    add_json(parser)
    parser.set_defaults(handler=_run)


def _run(options: argparse.Namespace) -> int:
    title = f"culture-tasks {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    if file := settings_file():
        title += f", settings of {file}"
    width = max(len(benchmark.title) for benchmark in benchmarks().values())
    return show_findings(examine(ask_judge=not options.no_judge), title=title, width=width, as_json=options.json)


def examine(*, ask_judge: bool = True) -> Iterator[tuple[str, Finding]]:
    """Looks at everything, and yields each subject with its finding as it comes."""
    looks: list[tuple[str, Callable[[], Finding]]] = [("packages", _packages)]
    looks += [("GPU", _gpu), *((name.replace("_", "-"), partial(_harness, name)) for name in HARNESSES)]
    try:
        settings = Settings.from_environment()
    except SettingsError as error:
        yield "settings", Finding("fix", "judge and data weren't looked at: a setting is wrong", str(error))
    else:
        looks += [("judge", partial(_judge, settings, ask_judge))] if rubrics() else []
        folder = settings.data_folder
        if folder is not None and not folder.is_dir():
            problem = f"CULTURE_TASKS_DATA={folder}: no such folder"
            looks.append(("data", lambda: Finding("fix", problem, "Name an existing one, or unset it.")))
        else:
            looks += [(benchmark.title, partial(_data, benchmark, settings)) for benchmark in benchmarks().values()]
    for subject, look in with_progress(looks, "doctor"):
        # An error of a judge's libraries may hold its address or key; errors of ours don't.
        yield subject, finding_of(look, lambda _: "") if subject == "judge" else finding_of(look)


def _packages() -> Finding:
    versions = {name: version for name in _SHOWN if (version := _version(name))}
    listing = ", ".join(f"{name} {version}" for name, version in versions.items())
    facts = {"versions": {"python": platform.python_version(), **versions}}
    requirements = filter(_is_needed, map(Requirement, metadata.requires(_PROJECT) or ()))
    unmet = [requirement for requirement in requirements if not _is_met(requirement)]
    if not unmet:
        return Finding("ok", listing, facts=facts)
    problems = ", ".join(f"{requirement.name} {_version(requirement.name) or 'missing'}" for requirement in unmet)
    install = " ".join(f"'{requirement.name}{requirement.specifier}'" for requirement in unmet)
    return Finding("fix", f"{listing}; not as needed: {problems}", f"pip install {install}", facts)


def _gpu() -> Finding:
    number = gpus()
    facts = {"gpus": number}
    return (
        Finding("ok", f"torch sees {number}", facts=facts)
        if number
        else Finding("note", "torch sees none", _NO_GPU, facts)
    )


def _is_needed(requirement: Requirement) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _is_met(requirement: Requirement) -> bool:
    version = _version(requirement.name)
    return version is not None and requirement.specifier.contains(version, prereleases=True)


def _harness(harness: Harness) -> Finding:
    """Looks whether a harness is told of our tasks, and whether their files are there, without starting it."""
    if harness == "lmms_eval" and (problems := list(plug_in_problems())):
        return Finding("fix", "doesn't load our plug-in", " ".join(problems))
    ours = [entry for entry in entries().values() if in_harness(entry, harness)]
    files = [task_file(entry, harness) for entry in ours if not isinstance(entry, Tag)]
    if missing := [file for file in files if file.is_relative_to(task_folder(harness)) and not file.is_file()]:
        problem = f"{len(missing)} of {len(files)} task files aren't there, such as {missing[0]}"
        return Finding("fix", problem, "Reinstall culture-tasks with `pip install .` in its checkout.")
    way = "`culture-tasks lm-eval run`" if harness == "lm_eval" else "its own command"
    return Finding("ok", f"runs our {len(ours)} tasks and groups through {way}", facts={"names": len(ours)})


def _judge(settings: Settings, ask: bool) -> Finding:
    """Asks the judge for its verdict on a right answer, past the cache."""
    rubric = next(iter(rubrics().values()))
    try:
        spec = spec_for(settings, rubric.model)
    except JudgeNotConfiguredError:
        return Finding("fix", "none is configured", _NO_JUDGE)
    facts: dict[str, Any] = {"judge": str(spec)}
    if spec.backend == "lexical":
        return Finding("note", "text overlap stands in for a judge: good for trials, not for results", facts=facts)
    if spec.backend == "none":
        summary = "none: responses are recorded, and graded later by `culture-tasks rejudge`"
        return Finding("note", summary, facts=facts)
    facts["rubric"] = rubric.name
    judge = make_judge(spec, settings.model_copy(update={"judge_cache": "off"}))
    began = time.monotonic()
    try:
        verdict = judge.check([(rubric, _SAMPLE)]) if ask else None
    finally:
        judge.close()
    if not ask:
        return Finding("ok", f"{spec}: not asked (--no-judge)", facts=facts)
    if verdict is None and spec.backend == "openai":
        return Finding("note", f"{spec}: its endpoint limits the rate now", facts=facts)
    if verdict is None or verdict.score is None:
        return Finding("ok", f"{spec}: it can be loaded", facts=facts)
    tokens = verdict.usage.prompt_tokens + verdict.usage.completion_tokens
    facts |= {"score": verdict.score, "tokens": tokens, "seconds": round(time.monotonic() - began, 2)}
    summary = (
        f"{spec}: rated a right answer {verdict.score:g} on a scale of {rubric.lowest:g} to {rubric.highest:g} "
        f"({rubric.name}; one question, {tokens} tokens, {facts['seconds']:.1f} s)"
    )
    if verdict.score == rubric.highest:
        return Finding("ok", summary, facts=facts)
    return Finding("note", summary, "A good judge gives a right answer the highest rating.", facts)


def _data(benchmark: Benchmark, settings: Settings) -> Finding:
    check_revisions(settings)
    tasks = [task for entry in benchmark.entries() for task in tasks_below(entry.name)]
    sources = dict.fromkeys(source for task in tasks for source in task.data.sources)
    states = [availability((source,), settings) for source in sources]
    counts = Counter(state.partition(": ")[0] for state in states)
    facts = {"tables": dict(counts)}
    kinds = {("unusable" if state == "error" else state): number for state, number in counts.items()}
    parts = [f"{number} of {len(states)} tables {kind}" for kind, number in kinds.items()]
    summary = f"data: {', '.join(parts if len(parts) > 1 else kinds)}"
    advice = {state.partition(": ")[0]: state.partition(": ")[2] for state in reversed(states)}
    if counts["error"]:
        return Finding("fix", summary, advice["error"], facts)
    if counts["missing"]:
        missing = advice["missing"]
        return Finding("note", summary, f"{missing[0].upper()}{missing[1:]}. Source: {benchmark.data}.", facts)
    if counts["not downloaded"]:
        return Finding("note", f"{summary}; the first run downloads them", facts=facts)
    return Finding("ok", summary, facts=facts)
