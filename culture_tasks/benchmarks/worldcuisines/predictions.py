"""The predictions on the small set in the authors' repository: one file per model, part of the data and form."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator

from culture_tasks.benchmarks.predictions import PublishedPredictions
from culture_tasks.benchmarks.worldcuisines.benchmark import PUBLISHED
from culture_tasks.benchmarks.worldcuisines.documents import KNOWLEDGE_BASE, TYPES, Format, group_name
from culture_tasks.data.tables import Identifier, Label, TableRow, read_file, validated
from culture_tasks.errors import DataError
from culture_tasks.published import load

_RESULTS, _QUESTIONS = Path("evaluation/result/small"), Path("generate_vqa/generated_data/hf_prompt")
_DISHES = Path("generate_vqa/resources/food_cleaned.csv")
_PARTS = ("task1", "task2")
_FORMS: Mapping[Format, str] = {"choices": "mc", "open": "oe"}
"""A form's name in the files."""

_FILES: Mapping[str, str] = {
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


class _Prediction(TableRow):
    qa_id: Identifier
    # The authors' table reader took the code of Hokkien for a missing value.
    lang: Annotated[Label, BeforeValidator(lambda value: value if isinstance(value, str) else "nan")]
    # A missing reply is NaN.
    prediction: Annotated[str, BeforeValidator(lambda value: value if isinstance(value, str) else "")]
    answer: str | None = None
    multi_choice_answer: int | None = None


def predictions(folder: Path) -> Sequence[PublishedPredictions]:
    """Returns the predictions of the published table's models whose files are all there, by model and form."""
    table = load("worldcuisines_scores")
    published = []
    for model, name in _FILES.items():
        for form, short in _FORMS.items():
            files = [folder / _RESULTS / f"{part}_{short}_{name}_pred_small.jsonl" for part in _PARTS]
            group = group_name("small", form)
            units = {group: "average"} | {f"{group}_{kind.name}": kind.name for kind in TYPES}
            printed = {
                (unit, PUBLISHED[form].name): cell
                for unit, question in units.items()
                if (cell := table.printed(model=model, form=form, set="small", question=question))
            }
            if all(file.is_file() for file in files) and printed:
                read = partial(_replies, files)
                published.append(
                    PublishedPredictions(model=model, group=group, replies=read, scores=printed, within=0.0101)
                )
    return published


def _replies(files: Sequence[Path]) -> dict[str, str]:
    return {
        f"{row.qa_id}-{row.lang}": row.prediction for file in files for row in validated(read_file(file), _Prediction)
    }


def write_questions(folder: Path, data_folder: Path) -> None:
    """Writes the predicted questions, and a knowledge base of blank images with the countries of the dishes.

    The predictions number the questions of the small set as the repository's large set does; its files of a small set
    have other questions.

    Raises:
        DataError: If the copy of the repository lacks the questions or the list of dishes.
    """
    import datasets
    import jsonlines
    from PIL import Image

    place = data_folder / KNOWLEDGE_BASE.folder
    place.mkdir(exist_ok=True)
    countries = {str(row["food_id"]): str(row["Countries"]) for row in read_file(folder / _DISHES).rows}
    dishes: dict[str, str] = {}
    for part in _PARTS:
        files = sorted((folder / _QUESTIONS / f"large_eval_{part}").glob("*.jsonl"))
        if not files:
            raise DataError(
                f"{folder / _QUESTIONS}: found no large_eval_{part}. Expected the authors' whole repository."
            )
        replies = read_file(next((folder / _RESULTS).glob(f"{part}_mc_*.jsonl")))
        question_ids = {row.qa_id for row in validated(replies, _Prediction)}
        rows = [row for file in files for row in read_file(file).rows if str(row["qa_id"]) in question_ids]
        dishes |= {str(row["image_url"]): str(row["food_id"]) for row in rows}
        with jsonlines.open(place / f"small_{part}.jsonl", "w") as writer:
            writer.write_all(rows)
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
    base.to_parquet(str(place / f"{KNOWLEDGE_BASE.stems[0]}.parquet"))
