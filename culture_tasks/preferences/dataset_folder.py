"""The folder of a build: ``sft/``, ``dpo/`` and ``kto/`` in TRL's form, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, get_args

from culture_tasks.errors import SettingsError
from culture_tasks.preferences.pair_rule import Pair, drawn

Method = Literal["sft", "dpo", "kto"]
METHODS: tuple[Method, ...] = get_args(Method)

Row = Mapping[str, Any]


def method_rows(pairs: Sequence[Pair], *, plain: bool, seed: int) -> dict[Method, list[Row]]:
    """Returns the rows of each method.

    TRL trains KTO in the order of its rows, and estimates the loss's reference point by giving each response to the
    prompt of the next row. The order is drawn, neighbours differ in their question, and every second row is desirable.

    Args:
        pairs: The pairs, in their order.
        plain: Texts rather than messages.
        seed: Seed of KTO's order.
    """
    found: dict[Method, list[Row]] = {method: [] for method in METHODS}
    kto: list[tuple[Row, Row]] = []
    for pair in pairs:
        question = pair.question
        facts = {"question_id": question.fingerprint, "language": question.language, "category": question.category}
        prompt = _turn("user", question.text, plain=plain)
        chosen, rejected = (_turn("assistant", each.text, plain=plain) for each in (pair.chosen, pair.rejected))
        for reference in question.references[:1]:
            completion = _turn("assistant", reference, plain=plain)
            found["sft"].append({"prompt": prompt, "completion": completion, **facts})
        ratings = {"chosen_rating": pair.chosen.rating, "rejected_rating": pair.rejected.rating}
        found["dpo"].append({"prompt": prompt, "chosen": chosen, "rejected": rejected, **facts, **ratings})
        kto.append(
            (
                {"prompt": prompt, "completion": chosen, "label": True, **facts, "rating": pair.chosen.rating},
                {"prompt": prompt, "completion": rejected, "label": False, **facts, "rating": pair.rejected.rating},
            )
        )
    kto.sort(key=lambda rows: drawn(seed, "kto", rows[0]["question_id"]))
    half = len(kto) // 2
    for (better, _), (_, worse) in zip(kto, kto[half:] + kto[:half], strict=True):
        found["kto"] += [better, worse]
    return found


def _turn(role: str, text: str, *, plain: bool) -> str | list[dict[str, str]]:
    return text if plain else [{"role": role, "content": text}]


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Gives a folder that takes its name once everything is in it, and goes away after an error.

    Raises:
        SettingsError: If there is something under that name already, or it can't be written.
    """
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise SettingsError(f"preferences: {target} is there already. Choose another folder with -o, or remove it.")
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


def write_rows(path: Path, rows: Iterable[Row]) -> str:
    """Writes rows, one JSON object a line, and returns the file's SHA-256."""
    path.parent.mkdir(exist_ok=True)
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for row in rows:
            line = (json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8", "replace")
            digest.update(line)
            file.write(line)
    return digest.hexdigest()
