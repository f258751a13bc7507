"""Scores the predictions that WorldCuisines' authors have published, and compares the scores with the published ones.

git clone https://github.com/worldcuisines/worldcuisines
python speed/worldcuisines_predictions.py worldcuisines -o PREDICTIONS

lm-eval runs our tasks on a model that gives the published replies, so that prompts, scores, result and sample files are
those of any other run. The images are blank, since nobody looks at them. Exit status 1: a score isn't as published.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from culture_tasks.benchmarks.registry import task_folders, task_named, tasks_below
from culture_tasks.benchmarks.worldcuisines.benchmark import PUBLISHED, TYPES, Format, group_name
from culture_tasks.benchmarks.worldcuisines.dishes import KNOWLEDGE_BASE
from culture_tasks.harness.loading import load_ahead
from culture_tasks.published import load, number

RESULTS, QUESTIONS = Path("evaluation/result/small"), Path("generate_vqa/generated_data/hf_prompt")
DISHES = Path("generate_vqa/resources/food_cleaned.csv")
PARTS = ("task1", "task2")
FORMS: Mapping[Format, str] = {"choices": "mc", "open": "oe"}
WITHIN = 0.0101  # how far the published table's rounding may move a score
MODELS = {
    "GPT-4o": "gpt-4o-2024-08-06",
    "Gemini 1.5 Flash": "gemini-1.5-flash",
    "Llama-3.2-90B": "llama-3.2-90b",
    "GPT-4o mini": "gpt-4o-mini-2024-07-18",
    "Qwen2-VL-7B": "qwen2-vl-7b-instruct",
    "Aria": "aria-25B-moe-4B",
    "Pixtral-12B": "pixtral-12b",
    "Llama-3.2-11B": "llama-3.2-11b",
    "Pangea-7B": "pangea-7b",
    "Molmo-7B-D": "molmo-7b-d",
    "Qwen2-VL-2B": "qwen-vl-2b",
    "Phi-3.5-Vision": "Phi-3.5-vision-instruct",
    "LLaVA-1.6-13B": "llava-1.6-13b",
    "Molmo-7B-O": "molmo-7b-o",
    "LLaVA-1.6-7B": "llava-1.6-7b",
    "MolmoE-1B": "molmoe-1b",
}
"""The models of the published table, each with its name in the files."""


def rows_of(file: Path) -> Iterator[dict[str, Any]]:
    """Yields the rows of a file of JSON lines."""
    with file.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def replies_of(files: Sequence[Path]) -> dict[str, str]:
    """Returns the replies by item; a missing one is NaN in the files, and so is the code of Hokkien."""
    return {
        f"{row['qa_id']}-{row['lang'] if isinstance(row['lang'], str) else 'nan'}": row["prediction"]
        if isinstance(row["prediction"], str)
        else ""
        for file in files
        for row in rows_of(file)
    }


def write_questions(repository: Path, data: Path) -> None:
    """Writes the predicted questions, and a knowledge base of blank images with the countries of the dishes.

    The predictions number the questions of the small set as the repository's large set does; its files of a small set
    have other questions.
    """
    import datasets
    from PIL import Image

    folder = data / KNOWLEDGE_BASE.folder
    folder.mkdir()
    dishes: dict[str, str] = {}
    for part in PARTS:
        numbers = {str(row["qa_id"]) for row in rows_of(next((repository / RESULTS).glob(f"{part}_mc_*.jsonl")))}
        files = sorted((repository / QUESTIONS / f"large_eval_{part}").glob("*.jsonl"))
        rows = [row for file in files for row in rows_of(file) if str(row["qa_id"]) in numbers]
        dishes |= {str(row["image_url"]): str(row["food_id"]) for row in rows}
        (folder / f"small_{part}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    with (repository / DISHES).open(encoding="utf-8", newline="") as file:
        countries = {row["food_id"]: row["Countries"] for row in csv.DictReader(file)}
    blank = io.BytesIO()
    Image.new("RGB", (8, 8)).save(blank, "PNG")
    columns = {
        "image1": [{"bytes": blank.getvalue(), "path": None}] * len(dishes),
        "image1_url": list(dishes),
        "countries": [countries.get(dish, "[]") for dish in dishes.values()],
    }
    text = datasets.Value("string")
    features = datasets.Features({"image1": datasets.Image(), "image1_url": text, "countries": text})
    base = datasets.Dataset.from_dict(columns, features=features)
    base.to_parquet(str(folder / f"{KNOWLEDGE_BASE.stems[0]}.parquet"))


def evaluate(model: str, group: str, replies: Mapping[str, str], output: Path | None) -> Mapping[str, Any]:
    """Returns the rows of lm-eval's results by task and group; its files are written where an output is named."""
    from lm_eval.evaluator import simple_evaluate
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.models.dummy import DummyLM
    from lm_eval.tasks import TaskManager

    class Published(DummyLM):  # type: ignore[misc]
        MULTIMODAL = True
        tokenizer = None  # the dummy's is on the Hub

        def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
            del disable_tqdm
            for request in requests:
                list(request.args[2]["visual"])  # images that nobody looks at are an error
            return [replies[task_named(request.task_name).score(request.doc, [""]).item] for request in requests]

    tracker = EvaluationTracker(output_path=None if output is None else str(output))
    with redirect_stderr(io.StringIO()):  # progress bars of lm-eval for every task
        results: Any = simple_evaluate(
            model=Published(),
            model_args=f"model={model}",
            tasks=[group],
            task_manager=TaskManager(include_path=list(map(str, task_folders("lm_eval"))), include_defaults=False),
            evaluation_tracker=tracker,
        )
    samples = results.pop("samples")
    if output is not None:
        tracker.save_results_aggregated(results=results, samples=samples)
        for task, rows in samples.items():
            tracker.save_results_samples(task_name=task, samples=rows)
    return {**results["results"], **results.get("groups", {})}


def main(arguments: Sequence[str] | None = None) -> int:
    """Scores all predictions that a clone of the authors' repository has."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", type=Path, metavar="REPOSITORY", help="clone of the authors' repository")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="folder for result and sample files")
    options = parser.parse_args(arguments)
    table, status = load("worldcuisines_scores"), 0
    with TemporaryDirectory() as data:
        os.environ["CULTURE_TASKS_DATA"] = data
        write_questions(options.repository, Path(data))
        load_ahead(task.name for form in FORMS for task in tasks_below(group_name("small", form)))
        for form, (model, name) in product(FORMS, MODELS.items()):
            files = [options.repository / RESULTS / f"{part}_{FORMS[form]}_{name}_pred_small.jsonl" for part in PARTS]
            group, metric = group_name("small", form), PUBLISHED[form]
            kinds = {group: "average"} | {f"{group}_{kind.name}": kind.name for kind in TYPES}
            cells = {unit: table.printed(model=model, form=form, set="small", question=kinds[unit]) for unit in kinds}
            printed = {unit: cell for unit, cell in cells.items() if cell}
            if not printed or not all(file.is_file() for file in files):
                continue
            rows = evaluate(model, group, replies_of(files), options.output)
            scores = {unit: metric.scale.times * rows[unit][f"{metric.name},none"] for unit in printed}
            wrong = [unit for unit, cell in printed.items() if abs(scores[unit] - number(cell).value) > WITHIN]
            print(f"{model}: {metric.name}, {len(printed) - len(wrong)} of {len(printed)} scores as published")
            for unit in [group, *wrong]:
                print(f"  {unit} has {scores[unit]:.2f}, published {printed[unit]}")
            status = 1 if wrong else status
    return status


if __name__ == "__main__":
    sys.exit(main())
