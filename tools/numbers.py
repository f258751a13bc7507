"""Keeps every number of a run of every task, and of a report over them, to compare with after a change.

``python tools/numbers.py write FOLDER`` runs all tasks on the bundled data in both harnesses, with models whose replies
follow from the document and a judge of which some verdicts fail, and writes a report over the runs. ``python
tools/numbers.py compare BEFORE AFTER`` lists the numbers that differ, that are gone and that are new; its status is 1
where any differs. A number that is gone or new is no fault in itself: tasks and tables come and go.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import importlib.util
import json
import logging
import math
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]

if __name__ == "numbers":  # another script of this folder, which is first on its path, asks for Python's own module
    _file = Path(os.__file__).with_name("numbers.py")
    _spec = importlib.util.spec_from_file_location("numbers", _file)
    sys.modules["numbers"] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules["numbers"])

TOLERANCE = 1e-9
SHOWN = 40
REPLIES = ("A", "B", "C", "**D**", "Yes", "No", "Neither", "True", "False", "Happiness", "**Sadness**", "Anger.", "…")
"""What models say where they don't repeat the document's reference."""

MODELS = {"steady": 2, "wavering": 1, "other": 0}
"""Names of the models, and in how many of four replies each repeats the document's reference."""


def digest(*parts: object) -> int:
    """Returns a number that follows from texts alone."""
    return int(hashlib.sha256("\x00".join(map(str, parts)).encode()).hexdigest()[:12], 16)


def reference(doc: Mapping[str, Any]) -> str:
    """Returns a reference of a document, or a text that follows from its fields."""
    for name in ("answer", "target", "reference", "answers", "label", "all_answers"):
        value = doc.get(name)
        while isinstance(value, list | tuple) and value:
            value = value[0]
        if isinstance(value, str) and value:
            return value
    return f"It is custom {digest(sorted(doc)) % 7}."


def reply(model: str, doc: Mapping[str, Any], prompt: str) -> str:
    """Returns what a model says to a document."""
    number = digest(model, prompt)
    return reference(doc) if number % 4 < MODELS[model] else REPLIES[number // 4 % len(REPLIES)]


def run(folder: Path) -> None:
    """Runs all tasks of both harnesses with all models, and writes their files."""
    from support.lmms_models import ChatEcho
    from support.scripted_judge import ScriptedJudge
    from support.scripted_lm import ScriptedLM
    from support.written_runs import write_lm_eval, write_lmms_eval

    from culture_tasks.benchmarks.interface import HARNESSES
    from culture_tasks.judges.rubric.verdicts import Verdict

    class Judge(ScriptedJudge):
        def submit(self, rubric: Any, item: Any) -> Any:
            number = digest(rubric.name, item.question, item.response)
            rating = rubric.lowest + number // 9 % (rubric.highest - rubric.lowest + 1)
            failed = ("unparsable", "refused", "failed")[number // 9 % 3]
            verdict = Verdict(failed) if number % 9 == 0 else Verdict("scored", float(rating))  # type: ignore[arg-type]
            return mock.Mock(verdict=lambda: verdict)

    class Chat(ChatEcho):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def answer(self, model_input: Any) -> str:
            return reply(self.name, model_input.doc, model_input.text)

    class LanguageModel(ScriptedLM):
        def __init__(self, name: str) -> None:
            super().__init__(lambda _prompt, _times: "")
            self.name = name

        def generate_until(self, requests: list[Any], **_options: Any) -> list[str]:
            for request in requests:
                list(request.args[2]["visual"] if len(request.args) > 2 else ())  # looks at the images
            return [reply(self.name, request.doc, request.args[0]) for request in requests]

        def loglikelihood(self, requests: list[Any], **_options: Any) -> list[tuple[float, bool]]:
            return [(-(digest(self.name, *request.args[:2]) % 9973) / 997, False) for request in requests]

    judge = Judge(lambda _item: Verdict("failed"))
    for harness in HARNESSES:
        names = tasks_of(harness)
        for model in MODELS:
            with mock.patch("culture_tasks.harness.session.shared_judge", return_value=judge):
                if harness == "lm_eval":
                    path = write_lm_eval(folder / harness, names, None, model, LanguageModel(model), bootstrap_iters=0)
                else:
                    lmms = Chat(model)
                    path = write_lmms_eval(folder / harness, names, model, lmms=lmms, bootstrap_iters=0)
            print(path, flush=True)


def tasks_of(harness: Any) -> list[str]:
    """Returns the groups that are in no other group, and the tasks of groups that can't run here whole."""
    from culture_tasks.benchmarks.interface import Task
    from culture_tasks.benchmarks.registry import entries, in_harness, tasks_below
    from culture_tasks.errors import MissingExtraError
    from culture_tasks.harness.loading import load_for_evaluation

    ours = {name: entry for name, entry in entries().items() if in_harness(entry, harness)}
    missing = set()
    for name, entry in ours.items():
        try:
            if isinstance(entry, Task):
                load_for_evaluation(name)
        except MissingExtraError as error:
            missing.add(name)
            print(f"{name}: left out. {error}")
    groups = {name: entry for name, entry in ours.items() if not isinstance(entry, Task)}
    whole = {name for name in groups if not any(task.name in missing for task in tasks_below(name))}
    members = {member for name in whole for member in groups[name].members}
    return sorted((whole | (ours.keys() - groups.keys() - missing)) - members)


def report(runs: Path, folder: Path) -> None:
    """Writes a report over runs, with a table of all scores and groups."""
    from culture_tasks import frames
    from culture_tasks.cli.main import main as command

    if command(["report", str(runs), "-o", str(folder), "--formats", "csv,markdown"]):
        raise SystemExit("The report failed.")
    frames.scores(runs).to_csv(folder / "csv" / "frames_scores.csv", index=False)


Numbers = dict[tuple[str, ...], str]


def metrics(folder: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields every number of the harnesses' result files, with where it stands."""
    for path in sorted(folder.rglob("*results*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        for part in ("results", "groups"):
            for task, values in (data.get(part) or {}).items():
                for name, value in values.items():
                    yield (path.relative_to(folder).parts[0], data["model_name"], part, task, name), str(value)


def cells(folder: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields every number and mark of a report's CSV files, with its table, the words of its row and its column."""
    for path in sorted(folder.glob("csv/*.csv")):
        with path.open(encoding="utf-8-sig", newline="") as file:
            header, *rows = csv.reader(file)
        rows_so_far: Counter[tuple[str, ...]] = Counter()
        for row in rows:
            entries = {column: value for column, value in zip(header, row, strict=True) if value and column != "Date"}
            numbers = {name: value for name, value in entries.items() if is_number(value) or name.endswith(" flags")}
            words = tuple(value for column, value in entries.items() if column not in numbers)
            rows_so_far[words] += 1
            for column, value in numbers.items():
                yield (path.name, *words, str(rows_so_far[words]), column), value


def is_number(text: str) -> bool:
    """Returns whether a text is a number."""
    try:
        return not math.isnan(float(text))
    except ValueError:
        return False


def are_equal(first: str, second: str) -> bool:
    """Returns whether two values are the same text, or the same number but for rounding."""
    if is_number(first) and is_number(second):
        return math.isclose(float(first), float(second), rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return first == second


def numbers(folder: Path) -> Numbers:
    """Returns every number that was kept, by where it stands."""
    return {**dict(metrics(folder / "runs")), **dict(cells(folder / "report"))}


def compare(before: Path, after: Path) -> int:
    """Prints the numbers that differ, are gone or are new; returns how many differ."""
    old, new = numbers(before), numbers(after)
    different = [key for key in old.keys() & new.keys() if not are_equal(old[key], new[key])]
    print(f"{len(old.keys() & new.keys()) - len(different):,} numbers are equal.")
    parts = (("differ", different), ("are gone", old.keys() - new.keys()), ("are new", new.keys() - old.keys()))
    for title, keys in parts:
        print(f"{len(keys):,} {title}.")
        for place, count in sorted(Counter(key[:1] if key[0].endswith(".csv") else key[:4] for key in keys).items()):
            print(f"  {count:6,}  {' '.join(place)}")
        for key in sorted(keys)[:SHOWN] if title == "differ" else ():
            print(f"    {' | '.join(key)}: {old[key]} -> {new[key]}")
    return len(different)


def main() -> int:
    """Runs the command, and returns its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("write", help="run all tasks and write a report").add_argument("folder", type=Path)
    comparing = commands.add_parser("compare", help="compare two folders of `write`")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    options = parser.parse_args()
    if options.command == "compare":
        return 1 if compare(options.before, options.after) else 0
    if options.folder.exists() and any(options.folder.iterdir()):  # old files would count as numbers of this run
        parser.error(f"{options.folder}: isn't empty. Name a new folder.")
    sys.path[:1] = [str(ROOT), str(ROOT / "tests")]
    for name in [name for name in os.environ if name.startswith("CULTURE_")]:
        del os.environ[name]
    os.environ |= {"CULTURE_TASKS_DATA": str(ROOT / "examples" / "data"), "HF_HUB_OFFLINE": "1"}
    logging.basicConfig(level=logging.ERROR)
    run(options.folder / "runs")
    report(options.folder / "runs", options.folder / "report")
    print(f"{len(numbers(options.folder)):,} numbers in {options.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
