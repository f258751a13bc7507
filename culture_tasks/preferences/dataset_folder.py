"""The folder of a build: ``sft/``, ``dpo/`` and ``kto/`` in TRL's form, with a manifest, written whole or not at all.

A row of ``sft/`` is a question with its reference, of ``dpo/`` a pair, of ``kto/`` one response of a pair with its
label.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from culture_tasks.data.reading import DataReading
from culture_tasks.errors import SettingsError
from culture_tasks.preferences.held_out import Overlap, items_by_task
from culture_tasks.preferences.pairs import SPLITS, PreferencePair, Rule, random_number
from culture_tasks.preferences.ratings import RatedQuestion, Ratings
from culture_tasks.preferences.recipes.recipe_files import recipe_files
from culture_tasks.results.trained_on import FILE_NAME, FORMAT
from culture_tasks.text import storable

Row = dict[str, Any]


def _message(role: str, text: str) -> list[Row]:
    return [{"role": role, "content": text}]


def _row(question: RatedQuestion, responses: Row, **about_ratings: Any) -> Row:
    """Returns a row: prompt, responses, and facts that trainers pass over."""
    facts = {
        "question_id": question.fingerprint,
        "language": question.language,
        "category": question.category,
        "culture": question.culture or "",
    }
    return {"prompt": _message("user", question.text), **responses, **facts, **about_ratings}


def _sft(pairs: Sequence[PreferencePair], _: int) -> Iterator[Row]:
    for pair in pairs:
        for reference in pair.question.references[:1]:
            yield _row(pair.question, {"completion": _message("assistant", reference)})


def _dpo(pairs: Sequence[PreferencePair], _: int) -> Iterator[Row]:
    for question, chosen, rejected in pairs:
        yield _row(
            question,
            {"chosen": _message("assistant", chosen.text), "rejected": _message("assistant", rejected.text)},
            chosen_rating=float(chosen.rating),
            rejected_rating=float(rejected.rating),
            chosen_by=chosen.writer,
            rejected_by=rejected.writer,
        )


def _kto(pairs: Sequence[PreferencePair], seed: int) -> Iterator[Row]:
    """Yields rows in the order that TRL's estimate of the loss's reference point needs.

    TRL trains KTO in the order of its rows, and estimates the reference point by giving each response to the prompt of
    the next row. So the order is drawn, neighbours differ in their question (with three questions or more), and every
    second row is desirable.
    """
    order = sorted(pairs, key=lambda pair: random_number(seed, "kto", pair.question.fingerprint))
    half = (len(order) + 1) // 2
    for better, worse in zip(order, order[half:] + order[:half], strict=True):
        for pair, answer, label in ((better, better.chosen, True), (worse, worse.rejected, False)):
            responses = {"completion": _message("assistant", answer.text), "label": label}
            yield _row(pair.question, responses, rating=float(answer.rating), by=answer.writer)


METHODS = {"sft": _sft, "dpo": _dpo, "kto": _kto}
"""How the rows of a method are made of pairs and a seed."""


def build(
    folder: Path,
    pairs: Mapping[str, Sequence[PreferencePair]],
    counts: Mapping[str, int],
    *,
    rule: Rule,
    seed: int,
    ratings: Ratings,
    overlap: Overlap,
    reading: DataReading,
    model: str,
) -> Mapping[str, Any]:
    """Writes a folder of training data, with recipes that train the model on them, and returns the manifest.

    The commits are those that the tests and the rows were read from on the Hub.
    """
    items = {name: sorted({pair.question.fingerprint for pair in pairs[name]}) for name in SPLITS}
    used = {*items["train"], *items["dev"]}
    files: dict[str, str] = {}
    rows: dict[str, dict[str, int]] = {split: {} for split in SPLITS}
    for method, split in itertools.product(METHODS, SPLITS):
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in METHODS[method](pairs[split], seed)]
        rows[split][method] = len(lines)
        files |= {f"{method}/{split}.jsonl": storable("".join(lines))} if lines else {}
    row_counts = {f"{method}_{split}_rows": rows[split][method] for method in METHODS for split in SPLITS}
    tested = (item for name in used for item in overlap.same.get(name, ()))
    manifest = {
        "format": FORMAT,
        "sources": ratings.sources,
        "commits": dict(sorted(reading.commits.items())),
        "rated_by": ratings.rated_by,
        "rule": asdict(rule),
        "seed": seed,
        "counts": {**counts, **row_counts},
        "files": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()},
        "items": items["train"],
        "dev_items": items["dev"],
        "tested_items": items_by_task(tested),
        "own_data": bool(reading.differences),
        "near_duplicates": [near._asdict() for near in overlap.near if near.question in used],
    }
    files[FILE_NAME] = storable(f"{json.dumps(manifest, indent=1, ensure_ascii=False)}\n")
    languages = sorted({pair.question.language for pair in pairs["train"]})
    _write(folder, files | recipe_files(folder, rows["train"], rows["dev"], languages, model))
    return manifest


def check_new(folder: Path) -> None:
    """Refuses a folder that is there already, unless it is empty and not the one that the command runs in."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir()) or folder.samefile(Path())):
        raise SettingsError(f"preferences: -o {folder} is there already. Remove it, or name a new folder with -o.")


def _write(folder: Path, files: Mapping[str, str]) -> None:
    """Writes files into a folder that takes its name once they are all in it, and goes away after an error."""
    check_new(folder)
    part = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}")
    try:
        for name, text in files.items():
            (part / name).parent.mkdir(parents=True, exist_ok=True)
            (part / name).write_bytes(text.encode())
        part.replace(folder)
    except OSError as error:
        raise SettingsError(
            f"preferences: can't write {folder} ({error.strerror}). Choose another folder with -o."
        ) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
