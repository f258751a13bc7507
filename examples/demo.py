"""The main job from end to end: both harnesses, unmodified, on toy data with a small real model. ``make demo`` runs it.

Each run is the command that a user would type, shown before its output. A harness may crash and still exit with 0, so
a run counts as done only when its result file names every task and every task has logged samples.
"""

from __future__ import annotations

import argparse
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
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).parents[1]
DATA = ROOT / "build" / "demo_data"
ENVIRONMENT = {"CULTURE_JUDGE": "lexical", "CULTURE_TASKS_DATA": str(DATA.relative_to(ROOT))}
TEXT_TASKS = ("culturalbench_easy", "normad_rule", "blend", "care_en_ar")
TOKENS = 48
TAIL = 40
SECONDS_BETWEEN_LINES = 5.0
COLOUR = re.compile(r"\x1b\[[0-9;]*m")

BEFORE = """\
Two models answer a few invented questions, one model in each harness, and a report puts them side by side.
Where a judge is needed, the lexical one compares words and understands nothing.

Fetching SmolLM2-135M-Instruct (93 MB, once), and making a model with random weights …
"""
REAL = """\
SmolLM2-135M-Instruct is real, one of the smallest models that answer at all. The other model has random weights: it
shows what noise scores, and takes the questions with images, which SmolLM2 can't.
"""
TOYS = """\
SmolLM2-135M-Instruct can't be had here ({log} says why), so both models have random weights, and all numbers are noise.
"""

AFTER = """\
Open {page}: a click on a number shows the replies behind it.

Both harnesses ran. The numbers hold for these few invented questions, and say nothing about any culture. For real ones,
change two things in the commands above (docs/tutorial.md has them for a laptop and for two sizes of GPU):
1. The model. lm-eval, on a GPU:    --model vllm --model_args pretrained=Qwen/Qwen3-8B --batch_size auto
              lmms-eval, on a GPU:  --model internvl_hf --model_args pretrained=OpenGVLab/InternVL3_5-8B-HF
2. The variables in front:          CULTURE_JUDGE=openai:gpt-4o OPENAI_API_KEY=…
   Without CULTURE_TASKS_DATA the benchmarks' own data come from the Hub; without --gen_kwargs replies aren't cut short.
"""


class DemoError(Exception):
    """A run that failed; the message says which and why, and where its log is."""


@dataclass(frozen=True)
class Run:
    """One harness on some tasks.

    Attributes:
        title: What it shows.
        folder: Where its results go, below the demonstration's folder.
        command: The command, without the output path; our own commands first.
        tasks: Tasks that must have results and samples.
    """

    title: str
    folder: str
    command: Sequence[str]
    tasks: Sequence[str]


def runs(lm: Path, vlm: Path) -> list[Run]:
    """Give the runs of the demonstration, with a language model and one for images in the given folders."""
    return [
        Run(
            "lm-eval: options, yes or no, a short answer, a long one",
            "lm_eval",
            (
                *("culture-tasks", "lm-eval", "run", "--model", "hf", "--model_args", f"pretrained={lm},dtype=float32"),
                *("--tasks", ",".join(TEXT_TASKS), "--gen_kwargs", f"max_gen_toks={TOKENS}", "--device", "cpu"),
                *("--batch_size", "10", "--apply_chat_template", "--log_samples"),
            ),
            TEXT_TASKS,
        ),
        Run(
            "lmms-eval: images, and the same questions",
            "lmms_eval",
            (
                *("lmms-eval", "--model", "internvl_hf"),
                *("--model_args", f"pretrained={vlm},device=cpu,device_map=cpu"),
                *("--tasks", ",".join(("culturalvqa", *TEXT_TASKS)), "--gen_kwargs", f"max_new_tokens={TOKENS}"),
                *("--batch_size", "1", "--log_samples"),
            ),
            ("culturalvqa", *TEXT_TASKS),
        ),
    ]


def copy_data() -> None:
    """Copy the bundled data, of BLEnD the region UK alone: an English model is soon done with its questions."""

    def others(folder: str, names: Sequence[str]) -> list[str]:
        in_regions = Path(folder).parent.name == "blend"
        return [name for name in names if in_regions and not name.startswith("UK_")]

    shutil.rmtree(DATA, ignore_errors=True)
    shutil.copytree(ROOT / "examples" / "data", DATA, ignore=others)


def make_models(folder: Path) -> tuple[Path, Path]:
    """Make a language model, real where it can be had, and one for images; say which, and give their folders."""
    start = time.monotonic()
    disable_progress_bar()
    lm, vlm = real_model.make(), tiny_models.make_tiny_vlm(folder / "random-weights")
    print(REAL if lm else TOYS.format(log=_short_path(real_model.FOLDER / "log")))
    lm = lm or tiny_models.make_tiny_lm(folder / "random-weights-text")
    print(f"The models are ready ({time.monotonic() - start:.0f} s).\n", flush=True)
    return lm, vlm


def carry_out(run: Run, output: Path) -> None:
    """Carry out one run.

    Raises:
        DemoError: If it failed, whatever its exit status.
    """
    folder, log = output / run.folder, output / f"{run.folder}.log"
    shutil.rmtree(folder, ignore_errors=True)  # what an earlier run left would count as this one's
    command = (*run.command, "--output_path", str(_short_path(folder)))
    _show(run.title, command)
    start = time.monotonic()
    status = _start(command, log)
    if problem := _problem(run, folder, status):
        print(*log.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL:], sep="\n", file=sys.stderr)
        raise DemoError(f"{run.title}: {problem}. The whole log is {_short_path(log)}.")
    print(f"{time.monotonic() - start:.0f} s; log in {_short_path(log)}\n", flush=True)


def report(output: Path, folders: Sequence[str]) -> Path:
    """Make the report of both runs, which prints its findings, and give the page.

    Raises:
        DemoError: If there is no page.
    """
    results = [str(_short_path(output / folder)) for folder in folders]
    command = ("culture-tasks", "report", *results, "-o", str(_short_path(output / "report")))
    page = output / "report" / "report.html"
    page.unlink(missing_ok=True)
    _show("The report", command)
    status = subprocess.run(  # noqa: S603 - the command above
        [Path(sys.executable).parent / command[0], *command[1:]], cwd=ROOT, env=_environment(os.environ), check=False
    ).returncode
    if status or not page.is_file():
        raise DemoError(f"The report: the command ended with status {status}.")
    return page


def _show(title: str, command: Sequence[str]) -> None:
    variables = [f"{name}={value}" for name, value in ENVIRONMENT.items()]
    print(f"== {title}\n\n$ {shlex.join([*variables, *command])}\n", flush=True)


def _start(command: Sequence[str], log: Path) -> int:
    """Start a command with its output in a log, show new last lines of the log, and give its exit status."""
    script = Path(sys.executable).parent / command[0]
    start, shown = time.monotonic(), ""
    with (
        log.open("wb") as file,
        subprocess.Popen(  # noqa: S603 - the commands above
            [script, *command[1:]],
            cwd=ROOT,
            env=_environment(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        while True:
            try:
                return process.wait(SECONDS_BETWEEN_LINES)
            except subprocess.TimeoutExpired:
                pass
            lines = [line.strip() for line in re.split("[\r\n]", COLOUR.sub("", log.read_text(errors="replace")))]
            last = next((line for line in reversed(lines) if line), "the harness starts")
            if last != shown:
                print(f"   {time.monotonic() - start:3.0f} s  {last[:100]}", flush=True)
            shown = last


def _environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Set the demonstration's own settings in place of the user's; small models are fastest on one thread."""
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
    parser = argparse.ArgumentParser(description="Run both harnesses on toy data with small models.")
    parser.add_argument(
        "--output", type=Path, default=ROOT / "demo_output", help="where to write (default: %(default)s)"
    )
    output = parser.parse_args(arguments).output.resolve()
    print(BEFORE, flush=True)
    copy_data()
    planned = runs(*make_models(output / "models"))
    try:
        for run in planned:
            carry_out(run, output)
        page = report(output, [run.folder for run in planned])
    except DemoError as error:
        print(f"The demonstration failed. {error}", file=sys.stderr)
        return 1
    print(f"\n{AFTER.format(page=_short_path(page))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
