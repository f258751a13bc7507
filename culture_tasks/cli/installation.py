"""What a run needs of this machine: packages, harnesses, judge, data, GPU, fonts, caches, disk.

Nothing is downloaded or written, and a judge is asked one question at most. A look that fails is a finding, too.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from packaging.requirements import Requirement

from culture_tasks.benchmarks.interface import HARNESSES, Benchmark, Harness
from culture_tasks.benchmarks.registry import benchmarks, reading_data, rubrics, tasks_below
from culture_tasks.data.sources import availability
from culture_tasks.errors import CultureTasksError, JudgeNotConfiguredError, SettingsError
from culture_tasks.harness.index_probe import GROUP
from culture_tasks.judges.cache import cache_files
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.judges.selection import JudgeSpec, make_judge, spec_for
from culture_tasks.settings import Settings

State = Literal["ok", "note", "fix"]
"""``note`` is for what only some runs need, ``fix`` for what stands in the way."""

_PROJECT = "culture-tasks"
_SHOWN = ("lm-eval", "lmms-eval", "torch", "transformers", "datasets", "vllm")
_PROBE_SECONDS = 180.0
_JUDGE_SECONDS = 30.0
_SAMPLE = JudgeItem("What is the capital of Japan?", ("Tokyo",), "Tokyo", language="English")
_GIGABYTE = 1e9
_LITTLE, _HARDLY_ANY = 20.0, 1.0
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


@dataclass(frozen=True, slots=True)
class SetupCheck:
    """What was found of one thing.

    Attributes:
        subject: What was looked at, in a word or two.
        state: Whether something has to be done.
        found: What was found.
        remedy: What to do; empty where nothing is to be done.
        facts: The same for programs.
    """

    subject: str
    state: State
    found: str
    remedy: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


def examine(*, ask_judge: bool = True, read_data: bool = False, deep: bool = False) -> Iterator[SetupCheck]:
    """Looks at everything, and yields each finding as it comes.

    Args:
        ask_judge: Whether the judge may be asked one question, which may cost something.
        read_data: Whether all data are read and checked, and downloaded where they aren't at hand.
        deep: Whether each harness builds its index of tasks, which takes half a minute.
    """
    settings: Settings | None = None
    try:
        settings = Settings.from_environment()
    except SettingsError as error:
        said = "judge, data and verdict cache weren't looked at: a setting is wrong"
        yield SetupCheck("settings", "fix", said, str(error))
    yield from _looked_at("packages", _packages)
    for harness in HARNESSES:
        yield from _looked_at(_command(harness), _harness if deep else _plug_in, harness)
    if settings is not None:
        yield from _looked_at("judge", _judge, settings, ask_judge)
        yield from _looked_at("verdict cache", _verdict_cache, settings)
        yield from _looked_at("data", _data, settings, read_data)
    for subject, look in (("Hub", _hub), ("GPU", _gpu), ("fonts", _fonts), ("disk", _disk)):
        yield from _looked_at(subject, look)


def _looked_at(subject: str, look: Callable[..., Iterable[SetupCheck]], *arguments: Any) -> Iterator[SetupCheck]:
    try:
        yield from look(*arguments)
    except CultureTasksError as error:
        yield SetupCheck(subject, "fix", "can't be used", str(error))
    except Exception as error:  # noqa: BLE001 - whatever is broken here is what the user wants to know
        # An error of a judge's libraries may hold its address or key; errors of ours don't.
        said = "" if subject == "judge" else f": {' '.join(str(error).split())[:300]}"
        yield SetupCheck(subject, "fix", f"can't be looked at ({type(error).__name__}{said})")


def _command(harness: Harness) -> str:
    return harness.replace("_", "-")


# Packages


def _packages() -> Iterator[SetupCheck]:
    required = [Requirement(line) for line in metadata.requires(_PROJECT) or ()]
    always = [each for each in required if each.marker is None or each.marker.evaluate({"extra": ""})]
    versions = {name: version for name in _SHOWN if (version := _version(name))}
    wrong = [each for each in always if not _is_met(each)]
    extras = {
        extra: _has_extra(extra, required) for extra in metadata.metadata(_PROJECT).get_all("Provides-Extra") or ()
    }
    shown = ", ".join(f"{name} {version}" for name, version in versions.items())
    facts = {"versions": {"python": sys.version.split()[0], **versions}, "extras": extras}
    if wrong:
        named = ", ".join(f"{each.name} {_version(each.name) or 'missing'}" for each in wrong)
        install = " ".join(f"'{each.name}{each.specifier}'" for each in wrong)
        yield SetupCheck("packages", "fix", f"{shown}; not as needed: {named}", f"pip install {install}", facts)
    else:
        yield SetupCheck("packages", "ok", shown, facts=facts)
    with_it, without = ([name for name, there in extras.items() if there is wanted] for wanted in (True, False))
    said = f"installed: {', '.join(with_it) or 'none'}; not installed: {', '.join(without) or 'none'}"
    yield SetupCheck("extras", "ok", said)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _is_met(requirement: Requirement) -> bool:
    version = _version(requirement.name)
    return version is not None and requirement.specifier.contains(version, prereleases=True)


def _has_extra(extra: str, required: Iterable[Requirement]) -> bool:
    return all(
        _is_met(each)
        for each in required
        if each.marker and each.marker.evaluate({"extra": extra}) and not each.marker.evaluate({"extra": ""})
    )


# Harnesses


def _plug_in(harness: Harness) -> Iterator[SetupCheck]:
    """Looks whether a harness is told of our tasks, without starting it."""
    ours = any(point.value.startswith("culture_tasks.") for point in metadata.entry_points(group=GROUP))
    if harness == "lmms_eval" and not ours:
        remedy = "Reinstall culture-tasks with `pip install .` in its checkout."
        yield SetupCheck(_command(harness), "fix", "doesn't see this package", remedy)
    else:
        way = "`culture-tasks lm-eval run`" if harness == "lm_eval" else "its own command"
        yield SetupCheck(_command(harness), "ok", f"runs our tasks through {way} (--deep builds its index of tasks)")


def _harness(harness: Harness) -> Iterator[SetupCheck]:
    """Builds a harness's index of tasks in another process, and looks for our names in it."""
    subject = _command(harness)
    # -P leaves out the current folder, which a harness's own command doesn't look into either.
    command = [sys.executable, "-P", "-m", "culture_tasks.harness.index_probe", harness]
    try:
        probe = subprocess.run(  # noqa: S603 - this interpreter, and one of our own modules
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        yield SetupCheck(subject, "fix", f"has not built its index of tasks within {_PROBE_SECONDS:g} seconds")
        return
    if probe.returncode != 0:
        lines = [line.strip() for line in probe.stderr.splitlines() if line.strip()] or ["no message"]
        retry = f"`{Path(sys.executable).name} -m culture_tasks.harness.index_probe {harness}` shows all of it."
        yield SetupCheck(subject, "fix", f"can't be started: {lines[-1][:300]}", retry)
        return
    facts = json.loads(probe.stdout)
    missing, taken = facts["missing"], facts["taken"]
    if missing:
        remedy = " ".join(facts.get("plug_ins") or ["Reinstall culture-tasks."])
        found = f"doesn't know {len(missing)} of our {facts['names']} tasks and groups, such as {missing[0]}"
        yield SetupCheck(subject, "fix", found, remedy, facts)
    elif taken:
        name, path = next(iter(taken.items()))
        found = f"takes {len(taken)} of our {facts['names']} names from elsewhere, such as {name} from {path}"
        yield SetupCheck(subject, "fix", found, "Remove the other package, or its task files.", facts)
    else:
        by = " through `culture-tasks lm-eval run`" if harness == "lm_eval" else ""
        yield SetupCheck(subject, "ok", f"knows all {facts['names']} of our tasks and groups{by}", facts=facts)


# Judge


def _judge(settings: Settings, ask: bool) -> Iterator[SetupCheck]:
    every = list(rubrics().values())
    if not every:
        return
    rubric = every[0]
    try:
        spec = spec_for(settings, rubric.model)
    except JudgeNotConfiguredError:
        remedy = (
            "Set OPENAI_API_KEY for the judges of the papers, CULTURE_JUDGE for another one, or CULTURE_JUDGE=none to "
            "record the responses and grade them later."
        )
        yield SetupCheck("judge", "fix", "none is configured", remedy)
        return
    if spec.backend == "lexical":
        said = "text overlap stands in for a judge: good for trials, not for results"
        yield SetupCheck("judge", "note", said, facts={"judge": str(spec)})
    elif spec.backend == "none":
        said = "none: responses are recorded, and graded later by `culture-tasks rejudge`"
        yield SetupCheck("judge", "note", said, facts={"judge": str(spec)})
    else:
        yield _tried(spec, rubric, settings, ask)


def _tried(spec: JudgeSpec, rubric: Rubric, settings: Settings, ask: bool) -> SetupCheck:
    """Asks the judge for its verdict on a right answer, past the cache."""
    facts: dict[str, Any] = {"judge": str(spec), "rubric": rubric.name}
    timeout = min(settings.judge_timeout, _JUDGE_SECONDS)
    judge = make_judge(spec, settings.model_copy(update={"judge_cache": "off", "judge_timeout": timeout}))
    if not ask:
        judge.close()
        return SetupCheck("judge", "ok", f"{spec}: not asked (--no-judge)", facts=facts)
    began = time.monotonic()
    try:
        verdict = judge.check([(rubric, _SAMPLE)])
    finally:
        judge.close()
    if verdict is None and spec.backend == "openai":
        return SetupCheck("judge", "note", f"{spec}: its endpoint limits the rate now", facts=facts)
    if verdict is None or verdict.score is None:
        return SetupCheck("judge", "ok", f"{spec}: can be loaded, as far as that shows without loading it", facts=facts)
    tokens = verdict.usage.prompt_tokens + verdict.usage.completion_tokens
    facts |= {"score": verdict.score, "tokens": tokens, "seconds": round(time.monotonic() - began, 2)}
    said = (
        f"{spec}: rated a right answer {verdict.score:g} on a scale of {rubric.lowest:g} to {rubric.highest:g} "
        f"({rubric.name}; one question, {tokens} tokens, {facts['seconds']:.1f} s)"
    )
    if verdict.score == rubric.highest:
        return SetupCheck("judge", "ok", said, facts=facts)
    return SetupCheck("judge", "note", said, "A good judge gives a right answer the highest rating.", facts)


def _verdict_cache(settings: Settings) -> Iterator[SetupCheck]:
    file = settings.cache_file
    if file is None:
        yield SetupCheck(
            "verdict cache", "note", "off: a repeated run asks the judge again", "Unset CULTURE_JUDGE_CACHE."
        )
        return
    completions = sum(each.completions for each in cache_files.stats(file))
    folder = _existing(file.parent)
    facts = {"file": str(file), "completions": completions}
    if not os.access(file if file.exists() else folder, os.W_OK):
        remedy = "Make it writable, or name another file by CULTURE_JUDGE_CACHE."
        yield SetupCheck("verdict cache", "fix", f"{file}: can't be written", remedy, facts)
    elif file.exists():
        yield SetupCheck("verdict cache", "ok", f"{file}: {completions:,} completions", facts=facts)
    else:
        yield SetupCheck("verdict cache", "ok", f"{file}: made by the first run", facts=facts)


# Data


def _data(settings: Settings, read: bool) -> Iterator[SetupCheck]:
    folder = settings.data_folder
    if folder is not None and not folder.is_dir():
        yield SetupCheck(
            "data", "fix", f"CULTURE_TASKS_DATA={folder}: no such folder", "Name an existing one, or unset it."
        )
        return
    for benchmark in benchmarks().values():
        with reading_data(settings):
            yield from _looked_at(benchmark.title, _data_of, benchmark, folder, read)


def _data_of(benchmark: Benchmark, folder: Path | None, read: bool) -> Iterator[SetupCheck]:
    tasks = [task for entry in benchmark.entries() for task in tasks_below(entry.name)]
    sources = dict.fromkeys(source for task in tasks for source in task.data.sources)
    states = [availability((source,), folder) for source in sources]
    counts = Counter(state.partition(": ")[0] for state in states)
    facts = {"tables": dict(counts)}
    kinds = {("unusable" if state == "error" else state): number for state, number in counts.items()}
    parts = [f"{number} of {len(states)} tables {kind}" for kind, number in kinds.items()]
    found = f"data: {', '.join(parts if len(parts) > 1 else kinds)}"
    advice = [state.partition(": ")[2] for kind in ("error", "missing") for state in states if state.startswith(kind)]
    if counts["error"]:
        yield SetupCheck(benchmark.title, "fix", found, advice[0], facts)
    elif read and set(counts) != {"missing"}:
        yield _read(benchmark, folder, facts)
    elif counts["missing"]:
        remedy = f"{advice[0][0].upper()}{advice[0][1:]}. Source: {benchmark.data}."
        yield SetupCheck(benchmark.title, "note", found, remedy, facts)
    elif counts["not downloaded"]:
        yield SetupCheck(benchmark.title, "note", f"{found}; the first run downloads them", facts=facts)
    else:
        yield SetupCheck(benchmark.title, "ok", found, facts=facts)


def _read(benchmark: Benchmark, folder: Path | None, facts: Mapping[str, Any]) -> SetupCheck:
    report = benchmark.check(folder)
    if report.usable:
        return SetupCheck(benchmark.title, "ok", "data: read, and usable", facts=facts)
    more = len(report.problems) - 1
    found = f"data: {report.problems[0]}{f' (and {more} more problems)' if more else ''}"
    remedy = f"`culture-tasks data check {benchmark.name}` lists all."
    return SetupCheck(benchmark.title, "fix", found, remedy, facts)


def _hub() -> Iterator[SetupCheck]:
    from huggingface_hub import constants, get_token

    from culture_tasks.data.hub import endpoint

    offline = bool(constants.HF_HUB_OFFLINE)
    logged_in = get_token() is not None
    said = f"{endpoint()}, {'logged in' if logged_in else 'not logged in (gated data need `hf auth login`)'}"
    if offline:
        said = f"not asked: HF_HUB_OFFLINE is set, and {constants.HF_HOME} is all there is"
    facts = {"endpoint": endpoint(), "offline": offline, "logged_in": logged_in}
    yield SetupCheck("Hub", "ok", said, facts=facts)


# Machine


def _gpu() -> Iterator[SetupCheck]:
    import torch

    if torch.cuda.is_available():
        found = [torch.cuda.get_device_properties(number) for number in range(torch.cuda.device_count())]
        devices = [{"name": each.name, "gigabytes": round(each.total_memory / _GIGABYTE, 1)} for each in found]
        kinds = Counter(f"{each['name']} ({each['gigabytes']:.0f} GB)" for each in devices)
        shown = ", ".join(f"{number} × {kind}" if number > 1 else kind for kind, number in kinds.items())
        yield SetupCheck("GPU", "ok", shown, facts={"devices": devices})
    elif torch.backends.mps.is_available():
        yield SetupCheck("GPU", "ok", "Apple's, as device mps", facts={"devices": [{"name": "mps"}]})
    elif shutil.which("nvidia-smi"):
        built = f"is built for CUDA {torch.version.cuda}" if torch.version.cuda else "is built for CPUs alone"
        remedy = "Compare `nvidia-smi`, which names the driver's CUDA; install a torch that is built for it."
        yield SetupCheck("GPU", "fix", f"torch sees none: torch {torch.__version__} {built}", remedy, {"devices": []})
    else:
        yield SetupCheck("GPU", "note", "none: models in this machine run on the CPU", facts={"devices": []})


def _fonts() -> Iterator[SetupCheck]:
    from culture_tasks.pages.fonts import choose, joins_letters

    without = [script for script, text in _SCRIPTS.items() if choose([text]).missing]
    facts = {"without": without, "joins_letters": joins_letters()}
    if without:
        remedy = "Figures as PNG or PDF have boxes instead. Debian: apt install fonts-noto-core fonts-noto-cjk"
        yield SetupCheck("fonts", "note", f"none for {', '.join(without)}", remedy, facts)
    elif not joins_letters():
        remedy = "pip install 'matplotlib>=3.11', or take SVG or HTML, which are right."
        yield SetupCheck("fonts", "note", "this matplotlib draws Arabic and Devanagari letters apart", remedy, facts)
    else:
        yield SetupCheck("fonts", "ok", f"for Latin, {', '.join(_SCRIPTS)}", facts=facts)


def _disk() -> Iterator[SetupCheck]:
    from huggingface_hub import constants

    places = {"models and data": Path(constants.HF_HOME), "results": Path.cwd()}
    free = {what: (place, shutil.disk_usage(_existing(place)).free / _GIGABYTE) for what, place in places.items()}
    shown = "; ".join(f"{gigabytes:.0f} GB free for {what} ({place})" for what, (place, gigabytes) in free.items())
    least = min(gigabytes for _, gigabytes in free.values())
    facts = {
        what: {"folder": str(place), "gigabytes": round(gigabytes, 1)} for what, (place, gigabytes) in free.items()
    }
    if least < _HARDLY_ANY:
        yield SetupCheck("disk", "fix", shown, "Make room, or name another folder by HF_HOME.", facts)
    elif free["models and data"][1] < _LITTLE:
        yield SetupCheck("disk", "note", shown, "A model of 7B takes 15 GB; HF_HOME names another folder.", facts)
    else:
        yield SetupCheck("disk", "ok", shown, facts=facts)


def _existing(folder: Path) -> Path:
    """Returns a folder, or the nearest above it that exists."""
    return next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
