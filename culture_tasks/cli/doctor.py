"""``culture-tasks doctor``: what a run needs of this machine, and what to do where something is missing.

Nothing is downloaded or written, and a judge is asked one question at most. A look that fails is a finding, too.
"""

from __future__ import annotations

import argparse
import platform
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from culture_tasks import __version__
from culture_tasks.benchmarks import registry
from culture_tasks.benchmarks.interface import HARNESSES, Benchmark, Harness
from culture_tasks.cli.options import AddParser, add_json, show_findings, with_progress
from culture_tasks.data.tables import availability
from culture_tasks.errors import JudgeNotConfiguredError, SettingsError
from culture_tasks.harness.plug_ins import plug_in_problems
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.judges.selection import make_judge, spec_for
from culture_tasks.selftest.findings import Finding, finding_of
from culture_tasks.settings import Settings

_SHOWN = ("lm-eval", "lmms-eval", "torch", "transformers", "datasets", "vllm")
_SAMPLE = JudgeItem("What is the capital of Japan?", ("Tokyo",), "Tokyo", language="English")
_NO_JUDGE = (
    "Set OPENAI_API_KEY for the judges of the papers, CULTURE_JUDGE for another one, or CULTURE_JUDGE=none to record "
    "the responses and grade them later. Tasks that a rule grades, such as culturalbench_easy, need none."
)
_DESCRIPTION = """\
Looks at packages, harnesses, judge and data. The judge is asked one question, as before a run. Nothing is
downloaded. Exit status 1: something has to be fixed.
"""


def register(add_parser: AddParser) -> None:
    """Adds the command."""
    parser = add_parser(description=_DESCRIPTION)
    parser.add_argument("--no-judge", action="store_true", help="don't ask the judge, which may cost something")
    add_json(parser)
    parser.set_defaults(handler=_run)


def _run(options: argparse.Namespace) -> int:
    title = f"culture-tasks {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    width = max(len(benchmark.title) for benchmark in registry.benchmarks().values())
    return show_findings(examine(ask_judge=not options.no_judge), title=title, width=width, as_json=options.json)


def examine(*, ask_judge: bool = True) -> Iterator[tuple[str, Finding]]:
    """Looks at everything, and yields each subject with its finding as it comes."""
    looks: list[tuple[str, Callable[[], Finding]]] = [("packages", _packages)]
    looks += [(name.replace("_", "-"), partial(_harness, name)) for name in HARNESSES]
    try:
        settings = Settings.from_environment()
    except SettingsError as error:
        yield "settings", Finding("fix", "judge and data weren't looked at: a setting is wrong", str(error))
    else:
        looks += [("judge", partial(_judge, settings, ask_judge))]
        folder = settings.data_folder
        if folder is not None and not folder.is_dir():
            problem = f"CULTURE_TASKS_DATA={folder}: no such folder"
            looks.append(("data", partial(Finding, "fix", problem, "Name an existing one, or unset it.")))
        else:
            looks += [(each.title, partial(_data, each, settings)) for each in registry.benchmarks().values()]
    for subject, look in with_progress(looks, "doctor"):
        # An error of a judge's libraries may hold its address or key; errors of ours don't.
        yield subject, finding_of(look, lambda _: "") if subject == "judge" else finding_of(look)


def _packages() -> Finding:
    versions = {str(canonicalize_name(each.metadata["Name"])): each.version for each in metadata.distributions()}
    shown = {name: versions[name] for name in _SHOWN if name in versions}
    listing = ", ".join(f"{name} {version}" for name, version in shown.items())
    facts = {"versions": {"python": platform.python_version(), **shown}}
    unmet: dict[str, str] = {}
    for needed in map(Requirement, metadata.requires("culture-tasks") or ()):
        version = versions.get(canonicalize_name(needed.name), "missing")
        is_met = version != "missing" and needed.specifier.contains(version, prereleases=True)
        if not is_met and (needed.marker is None or needed.marker.evaluate({"extra": ""})):
            unmet[f"{needed.name} {version}"] = f"'{needed.name}{needed.specifier}'"
    if not unmet:
        return Finding("ok", listing, facts=facts)
    return Finding(
        "fix", f"{listing}; not as needed: {', '.join(unmet)}", f"pip install {' '.join(unmet.values())}", facts
    )


def _harness(harness: Harness) -> Finding:
    """Looks whether a harness is told of our tasks, without starting it."""
    if harness == "lmms_eval" and (problems := list(plug_in_problems())):
        return Finding("fix", "doesn't load our plug-in", " ".join(problems))
    ours = [entry for entry in registry.entries().values() if registry.in_harness(entry, harness)]
    way = "`culture-tasks lm-eval run`" if harness == "lm_eval" else "its own command"
    return Finding("ok", f"runs our {len(ours)} tasks and groups through {way}", facts={"names": len(ours)})


def _judge(settings: Settings, ask: bool) -> Finding:
    """Asks the judge for its verdict on a right answer, past the cache."""
    rubric = next(iter(registry.rubrics().values()))
    try:
        spec = spec_for(settings, rubric.model)
    except JudgeNotConfiguredError:
        return Finding("fix", "none is configured", _NO_JUDGE)
    if spec.backend != "openai" or not ask:
        states = {
            "lexical": "text overlap stands in for a judge: good for trials, not for results",
            "none": "none: responses are recorded, and graded later by `culture-tasks rejudge`",
        }
        found = states.get(spec.backend, f"{spec}: not asked")
        return Finding("note" if spec.backend in states else "ok", found, facts={"judge": str(spec)})
    judge = make_judge(spec, settings.model_copy(update={"judge_cache": "off"}))
    try:
        verdict = judge.check([(rubric, _SAMPLE)])
    finally:
        judge.close()
    if verdict is None or verdict.score is None:
        return Finding("note", f"{spec}: its endpoint limits the rate now", facts={"judge": str(spec)})
    tokens = verdict.usage.prompt_tokens + verdict.usage.completion_tokens
    summary = (
        f"{spec}: rated a right answer {verdict.score:g} on a scale of {rubric.lowest:g} to {rubric.highest:g} "
        f"({rubric.name}; one question, {tokens} tokens)"
    )
    facts = {"judge": str(spec), "rubric": rubric.name, "score": verdict.score, "tokens": tokens}
    if verdict.score == rubric.highest:
        return Finding("ok", summary, facts=facts)
    return Finding("note", summary, "A good judge gives a right answer the highest rating.", facts)


def _data(benchmark: Benchmark, settings: Settings) -> Finding:
    registry.check_revisions(settings)
    tasks = [task for entry in benchmark.entries() for task in registry.tasks_below(entry.name)]
    sources = dict.fromkeys(source for task in tasks for source in task.data.sources)
    found = [availability((source,), settings).partition(": ") for source in sources]
    advice = {state: text for state, _, text in reversed(found)}
    counts = Counter(state for state, _, _ in found)
    several = len(counts) > 1
    states = ", ".join(f"{n} of {len(found)} tables {state}" if several else state for state, n in counts.items())
    facts = {"tables": dict(counts)}
    if counts["error"]:
        return Finding("fix", f"data: {states}", advice["error"], facts)
    if counts["missing"]:
        missing = f"{advice['missing'][0].upper()}{advice['missing'][1:]}"
        return Finding("note", f"data: {states}", f"{missing}. Source: {benchmark.data}.", facts)
    if counts["not downloaded"]:
        return Finding("note", f"data: {states}; the first run downloads them", facts=facts)
    return Finding("ok", f"data: {states}", facts=facts)
