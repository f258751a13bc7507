"""The folder of a build: ``sft/``, ``dpo/`` and ``kto/`` in TRL's form, with a manifest, written whole or not at all.

A row of ``sft/`` is a question with its reference, of ``dpo/`` a pair, of ``kto/`` one response of a pair with its
label. Under ``--pairs all`` a response may be the better of one pair and the worse of another: ``kto/`` leaves it out.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from culture_tasks.errors import SettingsError
from culture_tasks.preferences.manifest import FILE_NAME, Manifest
from culture_tasks.preferences.pair_rule import Pair
from culture_tasks.text import storable

SPLITS = ("train", "dev")

Row = Mapping[str, Any]
Turn = Callable[[str, str], str | list[dict[str, str]]]


def _message(role: str, text: str) -> list[dict[str, str]]:
    return [{"role": role, "content": text}]


def _text(role: str, text: str) -> str:  # noqa: ARG001 - a text has no role
    return text


def _facts(pair: Pair) -> Row:
    """Returns what a row says of its question beside the text; trainers pass over it."""
    question = pair.question
    return {
        "question_id": question.fingerprint,
        "language": question.language,
        "category": question.category,
        "culture": question.culture or "",
    }


def _sft(pairs: Iterable[Pair], turn: Turn) -> Iterator[Row]:
    questions = {pair.question.fingerprint: pair for pair in pairs}
    for pair in questions.values():
        for reference in pair.question.references[:1]:
            completion = turn("assistant", reference)
            yield {"prompt": turn("user", pair.question.text), "completion": completion, **_facts(pair)}


def _dpo(pairs: Iterable[Pair], turn: Turn) -> Iterator[Row]:
    for pair in pairs:
        yield {
            "prompt": turn("user", pair.question.text),
            "chosen": turn("assistant", pair.chosen.text),
            "rejected": turn("assistant", pair.rejected.text),
            **_facts(pair),
            "chosen_rating": float(pair.chosen.rating),
            "rejected_rating": float(pair.rejected.rating),
            "chosen_by": pair.chosen.by,
            "rejected_by": pair.rejected.by,
        }


def _kto(pairs: Sequence[Pair], turn: Turn) -> Iterator[Row]:
    chosen = {(pair.question.fingerprint, pair.chosen.text) for pair in pairs}
    rejected = {(pair.question.fingerprint, pair.rejected.text) for pair in pairs}
    done = chosen & rejected
    for pair in pairs:
        for answer, label in ((pair.chosen, True), (pair.rejected, False)):
            key = (pair.question.fingerprint, answer.text)
            if key in done:
                continue
            done.add(key)
            yield {
                "prompt": turn("user", pair.question.text),
                "completion": turn("assistant", answer.text),
                "label": label,
                **_facts(pair),
                "rating": float(answer.rating),
                "by": answer.by,
            }


METHODS: Mapping[str, Callable[[Sequence[Pair], Turn], Iterator[Row]]] = {"sft": _sft, "dpo": _dpo, "kto": _kto}
"""What gives the rows of each method's folder."""


def write_folder(folder: Path, pairs: Mapping[str, Sequence[Pair]], manifest: Manifest) -> Manifest:
    """Writes the data and the manifest, and returns the latter with the numbers of rows and the hashes of the files.

    Args:
        folder: The folder; it must not exist, or be empty.
        pairs: The pairs, by split. Without a pair, a split has no files; without a reference, SFT has none.
        manifest: What is known of the data.

    Raises:
        SettingsError: If the folder can't be written.
    """
    turn: Turn = _text if manifest.rule.plain else _message
    files: dict[str, str] = {}
    counts = dict(manifest.counts)
    with _new_folder(folder) as part:
        for method, rows_of in METHODS.items():
            for split in SPLITS:
                path = f"{method}/{split}.jsonl"
                number, sha256 = _write_rows(part / path, rows_of(pairs[split], turn))
                counts[f"{method}_{split}_rows"] = number
                if number:
                    files[path] = sha256
        written = manifest.model_copy(update={"counts": counts, "files": files})
        (part / FILE_NAME).write_text(written.as_json(), encoding="utf-8")
    return written


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
    """Makes sure that a folder isn't there yet, or is empty.

    Raises:
        SettingsError: If it is.
    """
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise SettingsError(f"preferences: {folder} is there already. Remove it, or choose another folder with -o.")


def _write_rows(path: Path, rows: Iterable[Row]) -> tuple[int, str]:
    """Writes rows, one JSON object a line, and returns their number and the file's SHA-256; no file without a row."""
    digest = hashlib.sha256()
    number = 0
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        for number, row in enumerate(rows, start=1):  # noqa: B007 - the number of rows
            line = storable(_ENCODE(row) + "\n").encode()
            digest.update(line)
            file.write(line)
    if not number:
        path.unlink()
        if not any(path.parent.iterdir()):
            path.parent.rmdir()
    return number, digest.hexdigest()


_ENCODE = json.JSONEncoder(ensure_ascii=False).encode
