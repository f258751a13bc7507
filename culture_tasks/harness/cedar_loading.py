"""CEDAR's documents as ``datasets.Dataset``: one language, or all languages of a modality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from culture_tasks.benchmarks.cedar.documents import NO_MINORITY, LanguageQuestions, check_languages, load
from culture_tasks.benchmarks.cedar.labels import LANGUAGES, MODALITIES, Language, Modality
from culture_tasks.data.images import image_column
from culture_tasks.harness.session import current_session

if TYPE_CHECKING:
    import datasets


class Parts(NamedTuple):
    """What one data set is made of.

    Attributes:
        modality: ``text`` or ``multimodal``.
        languages: Languages of the data.
        prompt_language: Language of the instruction; None means each row's own.
    """

    modality: Modality
    languages: tuple[Language, ...]
    prompt_language: Language | None = None


DATASETS: Mapping[str, Parts] = {
    **{f"cedar_{modality}": Parts(modality, LANGUAGES) for modality in MODALITIES},
    **{
        f"cedar_{modality}_{language}": Parts(modality, (language,))
        for modality in MODALITIES
        for language in LANGUAGES
    },
    **{
        f"cedar_{modality}_prompt_{prompt}_data_{language}": Parts(modality, (language,), prompt)
        for modality in MODALITIES
        for prompt in LANGUAGES
        for language in LANGUAGES
    },
}
"""The data sets by name: all languages, one language, and every pair of prompt and data language (section 4.4)."""


def load_dataset(wanted: Parts, data_folder: Path | None) -> datasets.Dataset:
    """Loads languages of a modality into one data set, with their images where the modality has them.

    The languages take turns, so that a run with ``--limit`` has documents of them all.

    Raises:
        DataError: If the data are missing or can't be used.
        SettingsError: If the user's list of supported languages has an unknown code.
    """
    import datasets

    check_languages(current_session().settings.languages)
    checked: set[Path] = set()
    parts = [
        _one(load(wanted.modality, language, data_folder, wanted.prompt_language), wanted.modality, checked)
        for language in wanted.languages
    ]
    together = _with_minority_marked(datasets.concatenate_datasets(parts))
    return together.select(_in_turns([len(part) for part in parts])) if len(parts) > 1 else together


def _in_turns(sizes: Sequence[int]) -> list[int]:
    """Returns the places of concatenated rows by turns: the first of each part, then the second of each."""
    starts = accumulate(sizes, initial=0)
    places = [(row, start + row) for start, size in zip(starts, sizes, strict=False) for row in range(size)]
    return [place for _, place in sorted(places)]


def _with_minority_marked(data: datasets.Dataset) -> datasets.Dataset:
    """Tells items without a minority label from data without any, so that all documents have the same metrics."""
    minority = data["minority"]
    if not any(minority):
        return data
    marked = [label or NO_MINORITY for label in minority]
    return data.remove_columns(["minority"]).add_column("minority", marked)


def _one(questions: LanguageQuestions, modality: Modality, checked: set[Path]) -> datasets.Dataset:
    import datasets

    data = datasets.Dataset.from_list([dict(doc) for doc in questions.documents])
    if modality == "text":
        return data
    images = image_column(questions.table, questions.image_names, questions.folder, checked)
    return datasets.concatenate_datasets([data, images], axis=1)
