"""The main job from end to end: both harnesses, unmodified, on toy data with a small real model. ``make demo`` runs it.

Each run is the command that a user would type, shown before its output. A harness may crash and still exit with 0, so
a run counts as done only when its result file names every task and every task has logged samples.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import real_model
import tiny_models
from transformers.utils.logging import disable_progress_bar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT = Path(__file__).parents[1]
ENVIRONMENT = {"CULTURE_JUDGE": "lexical", "CULTURE_TASKS_DATA": "examples/data"}
TAIL = 40
FINDINGS = 6
SECONDS_BETWEEN_LINES = 5.0
COLOUR = re.compile(r"\x1b\[[0-9;]*m")

BEFORE = """\
This is a demonstration. Its few questions are invented, and the lexical judge compares words and understands nothing.
"""
REAL = """\
The language model is real: SmolLM2-135M-Instruct, one of the smallest that answer at all. Its numbers are what it gives
to these few questions, and say nothing about what it knows of any culture. The model for images is a toy with random
weights: its numbers are noise.
"""
TOYS = """\
SmolLM2-135M-Instruct can't be had here ({log} says why), so both models are toys with random weights, and all numbers
are noise.
"""

AFTER = """\
Both harnesses ran. With so few invented questions no number above tells models apart.

For numbers that do, change two things in the commands above:
1. The model. lm-eval, on a GPU:    --model vllm --model_args pretrained=Qwen/Qwen3-8B --batch_size auto
              lmms-eval, on a GPU:  --model internvl_hf --model_args pretrained=OpenGVLab/InternVL3_5-8B-HF
2. The variables in front:          CULTURE_JUDGE=openai:gpt-4o OPENAI_API_KEY=…
   Without CULTURE_TASKS_DATA the benchmarks' own data come from the Hub.
"""


class DemoError(Exception):
    """A run didn't give the results that it should have."""


@dataclass(frozen=True)
class Run:
    """One command of a harness.

    Attributes:
        title: What it shows.
        name: Name of its output folder and log.
        command: What to type, the output folder aside.
        tasks: Tasks whose results it must write.
    """

    title: str
    name: str
    command: Sequence[str]
    tasks: Sequence[str]


QUESTIONS = ("culturalbench_easy", "normad", "blend_en")


def runs(lm: Path, vlm: Path) -> list[Run]:
    """Give the runs of the demonstration, with a language model and one for images in the given folders."""
    return [
        Run(
            "lm-eval: options, yes or no, and short answers, in English",
            "lm_eval",
            (
                *("culture-tasks", "lm-eval", "run", "--model", "hf", "--model_args", f"pretrained={lm},dtype=float32"),
                *("--tasks", ",".join(QUESTIONS), "--device", "cpu", "--batch_size", "8"),
                *("--apply_chat_template", "--log_samples"),
            ),
            ("culturalbench_easy", "normad", "blend_en_spain"),
        ),
        Run(
            "lmms-eval: CulturalVQA with images, by the toy model",
            "lmms_eval",
            (
                *("lmms-eval", "--model", "internvl_hf"),
                *("--model_args", f"pretrained={vlm},device=cpu,device_map=cpu"),
                *("--tasks", "culturalvqa", "--batch_size", "1", "--log_samples"),
            ),
            ("culturalvqa",),
        ),
    ]


def make_models(folder: Path) -> tuple[Path, Path]:
    """Make a language model, real where it can be had, and a toy for images; say which, and give their folders."""
    start = time.monotonic()
    print("Fetching a small real model (93 MB, once), and making a toy one …\n", flush=True)
    disable_progress_bar()
    tiny_models.make_tiny_vlm(folder / "vlm")
    lm = real_model.make()
    if lm is None:
        print(TOYS.format(log=_short_path(real_model.FOLDER / "log")))
        lm = folder / "lm"
        tiny_models.make_tiny_lm(lm)
    else:
        print(REAL)
    print(f"Models are ready ({time.monotonic() - start:.0f} s).\n", flush=True)
    return lm, folder / "vlm"


def carry_out(run: Run, output: Path) -> None:
    """Run one command, check what it wrote, and print its tables.

    Raises:
        DemoError: If the command failed, or left no results for one of its tasks.
    """
    folder, log = output / run.name, output / f"{run.name}.log"
    command = [*run.command, "--output_path", str(_short_path(folder))]
    assigned = " ".join(f"{name}={value}" for name, value in ENVIRONMENT.items())
    print(f"== {run.title}\n\n$ {assigned} {shlex.join(command)}\n", flush=True)
    start = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    status = _start(command, log)
    text = log.read_text(encoding="utf-8", errors="replace")
    printed = list(tables(text))
    problem = _problem(run, folder, status) or (None if printed else "no result table was printed")
    if problem:
        print(*text.splitlines()[-TAIL:], sep="\n", file=sys.stderr)
        raise DemoError(f"{run.title}: {problem}. The whole log is {_short_path(log)}.")
    print(*printed, sep="\n\n")
    seconds = time.monotonic() - start
    print(f"\n{seconds:.0f} s; results in {_short_path(folder)}, log in {_short_path(log)}\n", flush=True)


def show_report(output: Path) -> None:
    """Make the report of the language model's run, and print its first findings and the path of its page.

    Raises:
        DemoError: If there is no report.
    """
    folder, log = output / "report", output / "report.log"
    command = ["culture-tasks", "report", str(_short_path(output / "lm_eval")), "-o", str(_short_path(folder))]
    print(f"== The report of the language model's run\n\n$ {shlex.join(command)}\n", flush=True)
    status = _start(command, log)
    printed = log.read_text(encoding="utf-8", errors="replace").splitlines()
    page = folder / "report.html"
    if status or not page.is_file():
        print(*printed[-TAIL:], sep="\n", file=sys.stderr)
        raise DemoError(f"culture-tasks report: it ended with status {status}.")
    print(*printed[:FINDINGS], f"\nThe page to open: {_short_path(page)}\n", sep="\n", flush=True)


def tables(log: str) -> Iterator[str]:
    """Find a harness's result tables in its output: blocks of lines with bars that start with tasks or groups."""
    for barred, lines in itertools.groupby(log.splitlines(), key=lambda line: line.startswith("|")):
        block = list(lines)
        if barred and block[0].strip("| ").startswith(("Tasks", "Groups")):
            yield "\n".join(block)


def _start(command: Sequence[str], log: Path) -> int:
    executable = Path(sys.executable).with_name(command[0])
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - the commands above
            [executable, *command[1:]],
            cwd=ROOT,
            env=_environment(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    start = time.monotonic()
    while True:
        try:
            return process.wait(timeout=SECONDS_BETWEEN_LINES)
        except subprocess.TimeoutExpired:
            lines = [line.strip() for line in re.split("[\r\n]", COLOUR.sub("", log.read_text(errors="replace")))]
            last = next((line for line in reversed(lines) if line), "the harness starts")
            print(f"   {time.monotonic() - start:3.0f} s  {last[:100]}", flush=True)


def _environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Set the demonstration's own settings in place of the user's."""
    environment = {name: value for name, value in inherited.items() if not name.startswith("CULTURE_")}
    return {**environment, **ENVIRONMENT, "OMP_NUM_THREADS": "2"}


def _problem(run: Run, folder: Path, status: int) -> str | None:
    if status:
        return f"the command ended with status {status}"
    results = sorted(folder.rglob("*results*.json"))
    if not results:
        return f"no result file in {_short_path(folder)}"
    reported = json.loads(results[-1].read_text(encoding="utf-8"))["results"]
    for task in run.tasks:
        if task not in reported:
            return f"no results of {task} in {_short_path(results[-1])}"
        if not any(path.stat().st_size for path in folder.rglob(f"*samples_{task}*.jsonl")):
            return f"no samples of {task} in {_short_path(folder)}"
    return None


def _short_path(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration, and give its exit status back."""
    parser = argparse.ArgumentParser(description="Run both harnesses on toy data.")
    parser.add_argument(
        "--output", type=Path, default=ROOT / "demo_output", help="where to write (default: %(default)s)"
    )
    output = parser.parse_args(arguments).output.resolve()
    print(BEFORE)
    lm, vlm = make_models(output / "models")
    try:
        for run in runs(_short_path(lm), _short_path(vlm)):
            carry_out(run, output)
        show_report(output)
    except DemoError as error:
        print(f"The demonstration failed. {error}", file=sys.stderr)
        return 1
    print(AFTER)
    return 0


if __name__ == "__main__":
    sys.exit(main())
