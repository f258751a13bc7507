"""From rated responses to a folder that TRL trains on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from culture_tasks.errors import DataError
from culture_tasks.preferences.dataset_folder import Method, Row, method_rows, new_folder, write_rows
from culture_tasks.preferences.manifest import FILE_NAME, Manifest, Rule
from culture_tasks.preferences.pair_rule import Pair, best_and_worst, set_apart
from culture_tasks.preferences.rated_answers import Rated
from culture_tasks.preferences.recipes.recipe_files import PAPER_MODELS, recipe_files


def build(rated: Rated, rule: Rule, seed: int, folder: Path, *, model: str = PAPER_MODELS[0]) -> Manifest:
    """Makes pairs and writes them, with recipes that train on them.

    Args:
        rated: The rated responses.
        rule: How pairs are made.
        seed: Seed of every draw.
        folder: Folder to write; it must not exist, or be empty.
        model: Model that the recipes train.

    Raises:
        DataError: If no pair is left.
        SettingsError: If the folder can't be written.
    """
    pairs = [pair for question in rated.questions if (pair := best_and_worst(question, seed))]
    if not pairs:
        raise DataError("preferences: no pair is left: no question has two responses with different ratings.")
    dev = set_apart([pair.question for pair in pairs], rule.dev, seed)
    parts = {
        "train": [pair for pair in pairs if pair.question.fingerprint not in dev],
        "dev": [pair for pair in pairs if pair.question.fingerprint in dev],
    }
    data = {split: method_rows(some, plain=rule.plain, seed=seed) for split, some in parts.items()}
    rows = {split: {method: len(some) for method, some in by_method.items()} for split, by_method in data.items()}
    recipes = recipe_files(
        folder,
        rows=rows["train"],
        dev_rows=rows["dev"],
        conversational=not rule.plain,
        languages=sorted({pair.question.language for pair in parts["train"]}),
        model=model,
    )
    with new_folder(folder) as part:
        files = _write(data, part)
        manifest = Manifest(
            sources=tuple(rated.sources),
            rated_by=rated.rated_by,
            rule=rule,
            seed=seed,
            counts={
                "questions": len(rated.questions),
                "ties": len(rated.questions) - len(pairs),
                "train_pairs": len(parts["train"]),
                "dev_pairs": len(parts["dev"]),
            },
            files=files,
            items=_items(parts["train"]),
            dev_items=_items(parts["dev"]),
        )
        (part / FILE_NAME).write_text(manifest.as_json(), encoding="utf-8")
        for name, text in recipes.items():
            (part / name).write_text(text, encoding="utf-8")
    return manifest


def _items(pairs: Sequence[Pair]) -> tuple[str, ...]:
    return tuple(sorted({pair.question.fingerprint for pair in pairs}))


def _write(data: Mapping[str, Mapping[Method, Sequence[Row]]], folder: Path) -> dict[str, str]:
    files: dict[str, str] = {}
    for split, by_method in data.items():
        for method, rows in by_method.items():
            if rows:
                name = f"{method}/{split}.jsonl"
                files[name] = write_rows(folder / name, rows)
    return files
