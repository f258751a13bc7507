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
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, get_args

from culture_tasks.data.reading import DataReading
from culture_tasks.errors import SettingsError
from culture_tasks.preferences.held_out import items_by_task
from culture_tasks.preferences.pairs import SPLITS, PairSelection, PreferencePair, random_number
from culture_tasks.preferences.rated_questions import RatedAnswer, RatedQuestion
from culture_tasks.preferences.recipes.recipe_files import recipe_files
from culture_tasks.results.training_manifest import FILE_NAME, Manifest, Rule
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
    for question in {pair.question.fingerprint: pair.question for pair in pairs}.values():
        for reference in question.references[:1]:
            yield {"prompt": question.text, "completion": reference, **_facts(question)}


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


def _both_sides(pairs: Sequence[PreferencePair]) -> list[dict[tuple[str, str], tuple[RatedQuestion, RatedAnswer]]]:
    """Returns the better responses of all pairs, and the worse ones, by their question's fingerprint and their text."""
    return [
        {(pair.question.fingerprint, answer_of(pair).text): (pair.question, answer_of(pair)) for pair in pairs}
        for answer_of in (attrgetter("chosen"), attrgetter("rejected"))
    ]


def _kto(pairs: Sequence[PreferencePair], seed: int) -> Iterator[Row]:
    """Yields rows in the order that TRL's estimate of the loss's reference point needs.

    TRL trains KTO in the order of its rows, and estimates the reference point by giving each response to the prompt of
    the next row. The order is drawn. With one pair per question, and three questions or more, neighbours differ in
    their question, and every second row is desirable; with all pairs, that holds for most rows.

    Of several pairs of a question, a response may be the better one of some and the worse one of others. It is left
    out: KTO has no place for both labels.
    """
    better, worse = _both_sides(pairs)
    desirable, undesirable = (
        sorted(
            (row for key, row in rows.items() if key not in opposite),
            key=lambda row: random_number(seed, "kto", row[0].fingerprint),
        )
        for rows, opposite in ((better, worse), (worse, better))
    )
    half = (len(undesirable) + 1) // 2
    for rows in itertools.zip_longest(desirable, undesirable[half:] + undesirable[:half]):
        for label, row in zip((True, False), rows, strict=True):
            if row is not None:
                question, answer = row
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


def rows_of(method: Method, pairs: Sequence[PreferencePair], *, plain: bool, seed: int) -> Iterator[Row]:
    """Yields the rows of a method, as texts or as messages; the seed is that of KTO's order."""
    rows = _sft(pairs) if method == "sft" else _dpo(pairs) if method == "dpo" else _kto(pairs, seed)
    for row in rows:
        if not plain:
            row |= {name: [{"role": role, "content": row[name]}] for name, role in _ROLES.items() if name in row}
        yield row


def build(selection: PairSelection, rule: Rule, seed: int, folder: Path, reading: DataReading, model: str) -> Manifest:
    """Writes a folder of training data, which must not exist or be empty, with recipes that train the model on them.

    The manifest names the commits that the reading had from the Hub, and says whether a file wasn't the release's.
    """
    pairs = selection.pairs
    items = {split: tuple(sorted({pair.question.fingerprint for pair in pairs[split]})) for split in SPLITS}
    used = frozenset(items["train"] + items["dev"])
    item_maps = (selection.overlap.same, selection.rated.test_items)
    tested = [item for item_map in item_maps for fingerprint in used for item in item_map.get(fingerprint, ())]
    files: dict[str, str] = {}
    rows: dict[str, dict[str, int]] = {split: {} for split in SPLITS}
    with _new_folder(folder) as part:
        for method, split in itertools.product(METHODS, SPLITS):
            path = f"{method}/{split}.jsonl"
            data = rows_of(method, pairs[split], plain=rule.plain, seed=seed)
            rows[split][method], sha256 = _write_rows(part / path, data)
            if rows[split][method]:
                files[path] = sha256
        counts = {f"{method}_{split}_rows": rows[split][method] for method in METHODS for split in SPLITS}
        responses = [_both_sides(pairs[split]) for split in SPLITS]
        ambiguous = sum(len(better.keys() & worse.keys()) for better, worse in responses)
        manifest = Manifest(
            sources=tuple(selection.rated.sources),
            commits=dict(sorted(reading.commits.items())),
            rated_by=selection.rated.rated_by,
            rule=rule,
            seed=seed,
            counts={**selection.counts, **counts, "kto_responses_with_both_labels": ambiguous},
            files=files,
            items=items["train"],
            dev_items=items["dev"],
            tested_items=items_by_task(tested),
            own_data=bool(reading.differences),
            near_duplicates=tuple(near for near in selection.overlap.near if near.question in used),
        )
        (part / FILE_NAME).write_text(manifest.as_json(), encoding="utf-8")
        languages = sorted({pair.question.language for pair in pairs["train"]})
        recipes = recipe_files(
            folder, rows["train"], rows["dev"], conversational=not rule.plain, languages=languages, model=model
        )
        for name, text in recipes.items():
            (part / name).write_text(text, encoding="utf-8")
    return manifest


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


def check_new(folder: Path) -> None:
    """Refuses a folder that is there already, unless it is empty and not the one that the command runs in."""
    if folder.is_dir() and folder.samefile(Path()):  # it would be replaced from under the user's feet
        raise SettingsError(f"preferences: -o {folder} is the working directory. Name a new folder in it with -o.")
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise SettingsError(f"preferences: {folder} is there already. Remove it, or choose another folder with -o.")


def _write_rows(path: Path, rows: Iterable[Row]) -> tuple[int, str]:
    """Writes rows, one JSON object a line, and returns their number and the file's SHA-256; no file without a row."""
    digest = hashlib.sha256()
    number = 0
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        for number, row in enumerate(rows, start=1):  # noqa: B007 - the number of rows
            line = storable(json.dumps(row, ensure_ascii=False) + "\n").encode()
            digest.update(line)
            file.write(line)
    if not number:
        path.unlink()
        if not any(path.parent.iterdir()):
            path.parent.rmdir()
    return number, digest.hexdigest()
