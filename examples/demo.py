"""The main job from end to end: both harnesses, unmodified, on toy data with toy models. ``make demo`` runs it.

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

import tiny_models
from transformers.utils.logging import disable_progress_bar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT = Path(__file__).parents[1]
ENVIRONMENT = {"CULTURE_JUDGE": "lexical", "CULTURE_TASKS_DATA": "examples/data"}
TAIL = 40
SECONDS_BETWEEN_LINES = 5.0
COLOUR = re.compile(r"\x1b\[[0-9;]*m")

BEFORE = """\
This is a demonstration with toys. The models have random weights, made a moment ago; the data are a few synthetic
items; the lexical judge compares words and understands nothing. The numbers mean only that the machinery runs.
"""

AFTER = """\
Both harnesses ran. The numbers above are noise: toy models, toy data, a judge that compares words.

For real ones, change two things in the commands above:
1. The model. lmms-eval, on a GPU:  --model internvl_hf --model_args pretrained=OpenGVLab/InternVL3_5-8B-HF
              lm-eval, on a GPU:    --model vllm --model_args pretrained=Qwen/Qwen3-8B --batch_size auto
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


CARE = ("care_ar", "care_ja", "care_zh")


def runs(models: Path) -> list[Run]:
    """Give the runs of the demonstration, with models in the given folder."""
    lm, vlm = f"pretrained={models / 'lm'}", f"pretrained={models / 'vlm'}"
    lm_eval = ("culture-tasks", "lm-eval", "run", "--device", "cpu", "--apply_chat_template", "--log_samples")
    return [
        Run(
            "lmms-eval: CulturalVQA with images, and CARE in three languages",
            "lmms_eval",
            (
                *("lmms-eval", "--model", "internvl_hf", "--model_args", f"{vlm},device=cpu,device_map=cpu"),
                *("--tasks", "culturalvqa,care", "--batch_size", "1", "--log_samples"),
            ),
            ("culturalvqa", *CARE),
        ),
        Run(
            "lm-eval: CARE with a language model",
            "lm_eval_text",
            (*lm_eval, "--model", "hf", "--model_args", lm, "--tasks", "care", "--batch_size", "8"),
            CARE,
        ),
        Run(
            "lm-eval: CulturalVQA with images",
            "lm_eval_images",
            (*lm_eval, "--model", "hf-multimodal", "--model_args", vlm, "--tasks", "culturalvqa", "--batch_size", "1"),
            ("culturalvqa",),
        ),
    ]


def make_models(folder: Path) -> None:
    """Make the toy models."""
    start = time.monotonic()
    print("Making two tiny models …", flush=True)
    disable_progress_bar()
    tiny_models.make_tiny_lm(folder / "lm")
    tiny_models.make_tiny_vlm(folder / "vlm")
    print(
        f"Made two tiny models with random weights in {_short_path(folder)} ({time.monotonic() - start:.0f} s).\n",
        flush=True,
    )


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
    """Set the demonstration's own settings in place of the user's; a tiny model is fastest on one thread."""
    environment = {name: value for name, value in inherited.items() if not name.startswith("CULTURE_")}
    return {**environment, **ENVIRONMENT, "OMP_NUM_THREADS": "1"}


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
    parser = argparse.ArgumentParser(description="Run both harnesses on toy data with toy models.")
    parser.add_argument(
        "--output", type=Path, default=ROOT / "demo_output", help="where to write (default: %(default)s)"
    )
    output = parser.parse_args(arguments).output.resolve()
    print(BEFORE)
    make_models(output / "models")
    try:
        for run in runs(_short_path(output / "models")):
            carry_out(run, output)
    except DemoError as error:
        print(f"The demonstration failed. {error}", file=sys.stderr)
        return 1
    print(AFTER)
    return 0


if __name__ == "__main__":
    sys.exit(main())
