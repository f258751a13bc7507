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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, get_args

from culture_tasks.data.reading import DataReading
from culture_tasks.errors import SettingsError
from culture_tasks.preferences.held_out import Overlap, items_by_task
from culture_tasks.preferences.pairs import SPLITS, PreferencePair, Rule, random_number
from culture_tasks.preferences.ratings import RatedQuestion, Ratings
from culture_tasks.preferences.recipes.recipe_files import recipe_files
from culture_tasks.results.training_manifest import FILE_NAME, FORMAT
from culture_tasks.text import storable

Method = Literal["sft", "dpo", "kto"]
METHODS: tuple[Method, ...] = get_args(Method)

Row = dict[str, Any]


def _facts(question: RatedQuestion) -> Row:
    """Returns the facts of a question that rows have beside the text; trainers pass over them."""
    return {
        "question_id": question.fingerprint,
        "language": question.language,
        "category": question.category,
        "culture": question.culture or "",
    }


def _sft(pairs: Sequence[PreferencePair]) -> Iterator[Row]:
    for pair in pairs:
        for reference in pair.question.references[:1]:
            yield {"prompt": pair.question.text, "completion": reference, **_facts(pair.question)}


def _dpo(pairs: Sequence[PreferencePair]) -> Iterator[Row]:
    for question, chosen, rejected in pairs:
        yield {
            "prompt": question.text,
            "chosen": chosen.text,
            "rejected": rejected.text,
            **_facts(question),
            "chosen_rating": float(chosen.rating),
            "rejected_rating": float(rejected.rating),
            "chosen_by": chosen.writer,
            "rejected_by": rejected.writer,
        }


def _kto(pairs: Sequence[PreferencePair], seed: int) -> Iterator[Row]:
    """Yields rows in the order that TRL's estimate of the loss's reference point needs.

    TRL trains KTO in the order of its rows, and estimates the reference point by giving each response to the prompt of
    the next row. The order is drawn. With three questions or more, neighbours differ in their question, and every
    second row is desirable.
    """
    order = sorted(pairs, key=lambda pair: random_number(seed, "kto", pair.question.fingerprint))
    half = (len(order) + 1) // 2
    for better, worse in zip(order, order[half:] + order[:half], strict=True):
        for question, answer, label in (
            (better.question, better.chosen, True),
            (worse.question, worse.rejected, False),
        ):
            yield {
                "prompt": question.text,
                "completion": answer.text,
                "label": label,
                **_facts(question),
                "rating": float(answer.rating),
                "by": answer.writer,
            }


_ROLES = {"prompt": "user", "completion": "assistant", "chosen": "assistant", "rejected": "assistant"}
"""Whose message a column is."""


def rows_of(method: Method, pairs: Sequence[PreferencePair], seed: int) -> Iterator[Row]:
    """Yields the rows of a method, with texts as messages; the seed is that of KTO's order."""
    rows = _sft(pairs) if method == "sft" else _dpo(pairs) if method == "dpo" else _kto(pairs, seed)
    for row in rows:
        yield row | {name: [{"role": role, "content": row[name]}] for name, role in _ROLES.items() if name in row}


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
    """Writes a folder of training data, which must not exist or be empty, with recipes that train the model on them.

    Returns:
        The manifest, which names the commits that the tests and the rows were read from on the Hub.
    """
    items = {name: sorted({pair.question.fingerprint for pair in pairs[name]}) for name in SPLITS}
    used = {*items["train"], *items["dev"]}
    files: dict[str, str] = {}
    rows: dict[str, dict[str, int]] = {split: {} for split in SPLITS}
    with _new_folder(folder) as part:
        for method, split in itertools.product(METHODS, SPLITS):
            path = f"{method}/{split}.jsonl"
            data = rows_of(method, pairs[split], seed)
            rows[split][method], sha256 = _write_rows(part / path, data)
            files |= {path: sha256} if rows[split][method] else {}
        row_counts = {f"{method}_{split}_rows": rows[split][method] for method in METHODS for split in SPLITS}
        sources = (overlap.same, ratings.test_items)
        manifest = {
            "format": FORMAT,
            "sources": ratings.sources,
            "commits": dict(sorted(reading.commits.items())),
            "rated_by": ratings.rated_by,
            "rule": asdict(rule),
            "seed": seed,
            "counts": {**counts, **row_counts},
            "files": files,
            "items": items["train"],
            "dev_items": items["dev"],
            "tested_items": items_by_task(item for name in used for tests in sources for item in tests.get(name, ())),
            "own_data": bool(reading.differences),
            "near_duplicates": [near._asdict() for near in overlap.near if near.question in used],
        }
        text = json.dumps(manifest, indent=1, ensure_ascii=False)
        (part / FILE_NAME).write_text(storable(f"{text}\n"), encoding="utf-8")
        languages = sorted({pair.question.language for pair in pairs["train"]})
        recipes = recipe_files(folder, rows["train"], rows["dev"], languages, model)
        for name, recipe in recipes.items():
            (part / name).write_text(recipe, encoding="utf-8")
    return manifest


def check_new(folder: Path) -> None:
    """Refuses a folder that is there already, unless it is empty and not the one that the command runs in."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir()) or folder.samefile(Path())):
        raise SettingsError(f"preferences: -o {folder} is there already. Remove it, or name a new folder with -o.")


@contextmanager
def _new_folder(target: Path) -> Iterator[Path]:
    """Gives a folder that takes its name once everything is in it, and goes away after an error."""
    check_new(target)
    part = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        part.mkdir(parents=True)
        yield part
        part.replace(target)
    except OSError as error:
        raise SettingsError(
            f"preferences: can't write {target} ({error.strerror}). Choose another folder with -o."
        ) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _write_rows(path: Path, rows: Iterable[Row]) -> tuple[int, str]:
    """Writes rows, one JSON object a line, and returns their number and the file's SHA-256; no file without a row."""
    rows = iter(rows)
    first = next(rows, None)
    if first is None:
        return 0, ""
    digest, number = hashlib.sha256(), 0
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        for row in itertools.chain((first,), rows):
            number += 1
            line = storable(json.dumps(row, ensure_ascii=False) + "\n").encode()
            digest.update(line)
            file.write(line)
    return number, digest.hexdigest()
