"""``culture-tasks doctor``: what a run needs of this machine, and what to do where something is missing.

Nothing is downloaded or written, and a judge is asked one question at most. A look that fails is a finding, too.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from culture_tasks import __version__
from culture_tasks.benchmarks.interface import HARNESSES, Benchmark, Harness
from culture_tasks.benchmarks.registry import benchmarks, reading_data, rubrics, tasks_below
from culture_tasks.cli.options import AddParser, add_json, show_findings, with_progress
from culture_tasks.data.hub import endpoint
from culture_tasks.data.sources import availability
from culture_tasks.errors import JudgeNotConfiguredError, SettingsError
from culture_tasks.harness.index_probe import GROUP
from culture_tasks.judges.cache import cache_files
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.judges.selection import make_judge, spec_for
from culture_tasks.pages import pictures
from culture_tasks.selftest.findings import Finding, finding_of
from culture_tasks.settings import FILE_NAME, Settings, file_key, read_settings_file, settings_file

_PROJECT = "culture-tasks"
_SHOWN = ("lm-eval", "lmms-eval", "torch", "transformers", "datasets", "vllm")
_PROBE_SECONDS = 180.0
_JUDGE_SECONDS = 30.0
_SAMPLE = JudgeItem("What is the capital of Japan?", ("Tokyo",), "Tokyo", language="English")
_NO_JUDGE = (
    "Set OPENAI_API_KEY for the judges of the papers, CULTURE_JUDGE for another one, or CULTURE_JUDGE=none to record "
    "the responses and grade them later."
)
_GIGABYTE = 1e9
_LITTLE, _HARDLY_ANY = 20.0, 1.0  # gigabytes
_SCRIPTS: Mapping[str, str] = {
    "Arabic": "العربية",
    "Bengali": "অসমীয়া",
    "Chinese": "中文",
    "Devanagari": "हिन्दी",
    "Ethiopic": "አማርኛ",
    "Japanese": "ひらがなカタカナ",
    "Korean": "한국어",
}
"""Scripts in which benchmarks ask, and which names in a report may be in."""

_DESCRIPTION = """\
Looks at packages, harnesses, judge, data, GPU, fonts, caches and disk. The judge is asked one question, as before a
run. Nothing is downloaded. Exit status 1: something has to be fixed.
"""


def register(add_parser: AddParser) -> None:
    """Adds the command."""
    parser = add_parser(description=_DESCRIPTION)
    parser.add_argument("--no-judge", action="store_true", help="don't ask the judge, which may cost something")
    parser.add_argument("--read-data", action="store_true", help="read and check all data, downloading what is missing")
    deep = "build each harness's index of tasks and look for ours in it (half a minute)"
    parser.add_argument("--deep", action="store_true", help=deep)
    add_json(parser)
    parser.set_defaults(handler=_run)


def _run(options: argparse.Namespace) -> int:
    title = f"culture-tasks {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    findings = examine(ask_judge=not options.no_judge, read_data=options.read_data, deep=options.deep)
    width = max(len(benchmark.title) for benchmark in benchmarks().values())
    return show_findings(findings, title=title, width=width, as_json=options.json)


def examine(*, ask_judge: bool = True, read_data: bool = False, deep: bool = False) -> Iterator[tuple[str, Finding]]:
    """Looks at everything, and yields each subject with its finding as it comes."""
    looks: list[tuple[str, Callable[[], Finding]]] = [("packages", _packages), ("extras", _extras)]
    looks += [(name.replace("_", "-"), partial(_harness if deep else _plug_in, name)) for name in HARNESSES]
    try:
        settings = Settings.from_environment()
    except SettingsError as error:
        problem = "judge, data and verdict cache weren't looked at: a setting is wrong"
        yield "settings", Finding("fix", problem, str(error))
    else:
        looks.append(("settings", _settings))
        looks += [("judge", partial(_judge, settings, ask_judge))] if rubrics() else []
        looks.append(("verdict cache", partial(_verdict_cache, settings)))
        folder = settings.data_folder
        if folder is not None and not folder.is_dir():
            problem = f"CULTURE_TASKS_DATA={folder}: no such folder"
            looks.append(("data", lambda: Finding("fix", problem, "Name an existing one, or unset it.")))
        else:
            looks += [
                (benchmark.title, partial(_data, benchmark, settings, read_data)) for benchmark in benchmarks().values()
            ]
    looks += [("Hub", _hub), ("GPU", _gpu), ("fonts", _fonts), ("disk", _disk)]
    for subject, look in with_progress(looks, "doctor"):
        # An error of a judge's libraries may hold its address or key; errors of ours don't.
        yield subject, finding_of(look, lambda _: "") if subject == "judge" else finding_of(look)


def _settings() -> Finding:
    file = settings_file()
    if file is None:
        return Finding("ok", f"no {FILE_NAME} here, above or at home", facts={"file": None})
    keys = [file_key(variable) for variable in read_settings_file(file)]
    summary = f"{file}: {', '.join(keys) or 'nothing'}; environment variables prevail"
    return Finding("ok", summary, facts={"file": str(file), "keys": keys})


def _packages() -> Finding:
    versions = {name: version for name in _SHOWN if (version := _version(name))}
    listing = ", ".join(f"{name} {version}" for name, version in versions.items())
    facts = {"versions": {"python": sys.version.split()[0], **versions}, "extras": _installed_extras()}
    unmet = [requirement for requirement in filter(_applies, _requirements()) if not _is_met(requirement)]
    if not unmet:
        return Finding("ok", listing, facts=facts)
    problems = ", ".join(f"{requirement.name} {_version(requirement.name) or 'missing'}" for requirement in unmet)
    install = " ".join(f"'{requirement.name}{requirement.specifier}'" for requirement in unmet)
    return Finding("fix", f"{listing}; not as needed: {problems}", f"pip install {install}", facts)


def _extras() -> Finding:
    extras = _installed_extras()
    installed = ", ".join(name for name, is_installed in extras.items() if is_installed)
    missing = ", ".join(name for name, is_installed in extras.items() if not is_installed)
    return Finding("ok", f"installed: {installed or 'none'}; not installed: {missing or 'none'}")


def _requirements() -> list[Requirement]:
    return [Requirement(line) for line in metadata.requires(_PROJECT) or ()]


def _applies(requirement: Requirement, extra: str = "") -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def _installed_extras() -> dict[str, bool]:
    requirements = [requirement for requirement in _requirements() if not _applies(requirement)]
    extras = metadata.metadata(_PROJECT).get_all("Provides-Extra") or ()
    return {
        extra: all(_is_met(requirement) for requirement in requirements if _applies(requirement, extra))
        for extra in extras
    }


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _is_met(requirement: Requirement) -> bool:
    version = _version(requirement.name)
    return version is not None and requirement.specifier.contains(version, prereleases=True)


def _plug_in(harness: Harness) -> Finding:
    """Looks whether a harness is told of our tasks, without starting it."""
    ours = any(point.value.startswith("culture_tasks.") for point in metadata.entry_points(group=GROUP))
    if harness == "lmms_eval" and not ours:
        remedy = "Reinstall culture-tasks with `pip install .` in its checkout."
        return Finding("fix", "doesn't see this package", remedy)
    way = "`culture-tasks lm-eval run`" if harness == "lm_eval" else "its own command"
    return Finding("ok", f"runs our tasks through {way} (--deep builds its index of tasks)")


def _harness(harness: Harness) -> Finding:
    """Builds a harness's index of tasks in another process, and looks for our names in it."""
    # -P leaves out the current folder, which a harness's own command doesn't look into either.
    command = [sys.executable, "-P", "-m", "culture_tasks.harness.index_probe", harness]
    options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "errors": "replace"}
    try:
        probe = subprocess.run(command, **options, timeout=_PROBE_SECONDS, check=False)  # noqa: S603 - one of our modules
    except subprocess.TimeoutExpired:
        return Finding("fix", f"has not built its index of tasks within {_PROBE_SECONDS:g} seconds")
    if probe.returncode != 0:
        lines = [line.strip() for line in probe.stderr.splitlines() if line.strip()] or ["no message"]
        retry = f"`{Path(sys.executable).name} -m culture_tasks.harness.index_probe {harness}` shows all of it."
        return Finding("fix", f"can't be started: {lines[-1][:300]}", retry)
    facts = json.loads(probe.stdout)
    if missing := facts["missing"]:
        remedy = " ".join(facts.get("plug_ins") or ["Reinstall culture-tasks."])
        problem = f"doesn't know {len(missing)} of our {facts['names']} tasks and groups, such as {missing[0]}"
        return Finding("fix", problem, remedy, facts)
    if clashes := facts["taken"]:
        name, path = next(iter(clashes.items()))
        problem = f"takes {len(clashes)} of our {facts['names']} names from elsewhere, such as {name} from {path}"
        return Finding("fix", problem, "Remove the other package, or its task files.", facts)
    way = " through `culture-tasks lm-eval run`" if harness == "lm_eval" else ""
    return Finding("ok", f"knows all {facts['names']} of our tasks and groups{way}", facts=facts)


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
    timeout = min(settings.judge_timeout, _JUDGE_SECONDS)
    judge = make_judge(spec, settings.model_copy(update={"judge_cache": "off", "judge_timeout": timeout}))
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
        return Finding("ok", f"{spec}: looks usable; it wasn't loaded", facts=facts)
    tokens = verdict.usage.prompt_tokens + verdict.usage.completion_tokens
    facts |= {"score": verdict.score, "tokens": tokens, "seconds": round(time.monotonic() - began, 2)}
    summary = (
        f"{spec}: rated a right answer {verdict.score:g} on a scale of {rubric.lowest:g} to {rubric.highest:g} "
        f"({rubric.name}; one question, {tokens} tokens, {facts['seconds']:.1f} s)"
    )
    if verdict.score == rubric.highest:
        return Finding("ok", summary, facts=facts)
    return Finding("note", summary, "A good judge gives a right answer the highest rating.", facts)


def _verdict_cache(settings: Settings) -> Finding:
    file = settings.cache_file
    if file is None:
        return Finding("note", "off: a repeated run asks the judge again", "Unset CULTURE_JUDGE_CACHE.")
    completions = sum(stats.completions for stats in cache_files.stats(file))
    facts = {"file": str(file), "completions": completions}
    if not os.access(_nearest(file), os.W_OK):
        remedy = "Make it writable, or name another file by CULTURE_JUDGE_CACHE."
        return Finding("fix", f"{file}: can't be written", remedy, facts)
    contents = f"{completions:,} completions" if file.exists() else "made by the first run"
    return Finding("ok", f"{file}: {contents}", facts=facts)


def _data(benchmark: Benchmark, settings: Settings, read: bool) -> Finding:
    folder = settings.data_folder
    tasks = [task for entry in benchmark.entries() for task in tasks_below(entry.name)]
    sources = dict.fromkeys(source for task in tasks for source in task.data.sources)
    with reading_data(settings):
        states = [availability((source,), folder) for source in sources]
        counts = Counter(state.partition(": ")[0] for state in states)
        report = benchmark.check(folder) if read and not counts["error"] and set(counts) != {"missing"} else None
    facts = {"tables": dict(counts)}
    if report is not None:
        if report.usable:
            return Finding("ok", "data: read, and usable", facts=facts)
        rest = len(report.problems) - 1
        problem = f"data: {report.problems[0]}{f' (and {rest} more problems)' if rest else ''}"
        return Finding("fix", problem, f"`culture-tasks data check {benchmark.name}` lists all.", facts)
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


def _hub() -> Finding:
    from huggingface_hub import constants, get_token

    offline, logged_in = bool(constants.HF_HUB_OFFLINE), get_token() is not None
    summary = f"{endpoint()}, {'logged in' if logged_in else 'not logged in (gated data need `hf auth login`)'}"
    if offline:
        summary = f"not asked: HF_HUB_OFFLINE is set, and {constants.HF_HOME} is all there is"
    return Finding("ok", summary, facts={"endpoint": endpoint(), "offline": offline, "logged_in": logged_in})


def _gpu() -> Finding:
    import torch

    if torch.cuda.is_available():
        cards = [torch.cuda.get_device_properties(number) for number in range(torch.cuda.device_count())]
        devices = [{"name": card.name, "gigabytes": round(card.total_memory / _GIGABYTE, 1)} for card in cards]
        kinds = Counter(f"{device['name']} ({device['gigabytes']:.0f} GB)" for device in devices)
        listing = ", ".join(f"{number} × {kind}" if number > 1 else kind for kind, number in kinds.items())
        return Finding("ok", listing, facts={"devices": devices})
    if torch.backends.mps.is_available():
        return Finding("ok", "Apple's, as device mps", facts={"devices": [{"name": "mps"}]})
    if shutil.which("nvidia-smi"):
        build = f"is built for CUDA {torch.version.cuda}" if torch.version.cuda else "is built for CPUs alone"
        remedy = "Compare `nvidia-smi`, which names the driver's CUDA; install a torch that is built for it."
        return Finding("fix", f"torch sees none: torch {torch.__version__} {build}", remedy, {"devices": []})
    return Finding("note", "none: models in this machine run on the CPU", facts={"devices": []})


def _fonts() -> Finding:
    missing_scripts = [script for script, text in _SCRIPTS.items() if pictures.choose([text]).missing]
    facts = {"without": missing_scripts, "joins_letters": pictures.joins_letters()}
    if missing_scripts:
        remedy = "Figures as PNG or PDF have boxes instead. Debian: apt install fonts-noto-core fonts-noto-cjk"
        return Finding("note", f"none for {', '.join(missing_scripts)}", remedy, facts)
    if not facts["joins_letters"]:
        remedy = "pip install 'matplotlib>=3.11', or take SVG or HTML, which are right."
        return Finding("note", "this matplotlib draws Arabic and Devanagari letters apart", remedy, facts)
    return Finding("ok", f"for Latin, {', '.join(_SCRIPTS)}", facts=facts)


def _disk() -> Finding:
    from huggingface_hub import constants

    places = {"models and data": Path(constants.HF_HOME), "results": Path.cwd()}
    free = {purpose: shutil.disk_usage(_nearest(place)).free / _GIGABYTE for purpose, place in places.items()}
    listing = "; ".join(f"{free[purpose]:.0f} GB free for {purpose} ({place})" for purpose, place in places.items())
    facts = {purpose: {"folder": str(place), "gigabytes": round(free[purpose], 1)} for purpose, place in places.items()}
    if min(free.values()) < _HARDLY_ANY:
        return Finding("fix", listing, "Make room, or name another folder by HF_HOME.", facts)
    if free["models and data"] < _LITTLE:
        return Finding("note", listing, "A model of 7B takes 15 GB; HF_HOME names another folder.", facts)
    return Finding("ok", listing, facts=facts)


def _nearest(path: Path) -> Path:
    """Returns a path, or the nearest folder above it that exists."""
    return next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists())
