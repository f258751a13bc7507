"""Documents as the harnesses want them: a ``datasets.Dataset``, checked, with the judge known to be usable."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from culture_tasks.benchmarks.care import documents as care_documents
from culture_tasks.benchmarks.crosscult import tasks as crosscult_tasks
from culture_tasks.benchmarks.culturalvqa import documents as culturalvqa_documents
from culture_tasks.data.tables import extra_columns
from culture_tasks.errors import CultureTasksError, nearest
from culture_tasks.harness import care, cedar_loading, crosscult_data, culturalvqa
from culture_tasks.harness.session import Session, current_session, renew_session
from culture_tasks.judges.rubrics import Rubric
from culture_tasks.judges.verdicts import JudgeItem
from culture_tasks.settings import Settings

if TYPE_CHECKING:
    import datasets

_log = logging.getLogger(__name__)

Expected = Iterable[tuple[Rubric, JudgeItem]]
Loader = Callable[[Path | None], tuple["datasets.Dataset", Expected]]


def _care(language: care_documents.Language, english: bool) -> Loader:
    def load(data_folder: Path | None) -> tuple[datasets.Dataset, Expected]:
        docs = care_documents.load(language, data_folder, english=english)
        return _from_documents(docs), care.expected(docs)

    return load


def _culturalvqa(variant: culturalvqa_documents.Variant, rubric: culturalvqa.VqaRubric = "lave") -> Loader:
    def load(data_folder: Path | None) -> tuple[datasets.Dataset, Expected]:
        import datasets

        from culture_tasks.data.images import image_column

        questions = culturalvqa_documents.load(variant, data_folder)
        data = _from_documents(questions.documents)
        if variant in culturalvqa_documents.WITH_IMAGE:
            images = image_column(questions.table, questions.image_names, questions.folder)
            data = datasets.concatenate_datasets([data, images], axis=1)
        return data, culturalvqa.expected(questions.documents, rubric)

    return load


def _cedar(parts: cedar_loading.Parts) -> Loader:
    def load(data_folder: Path | None) -> tuple[datasets.Dataset, Expected]:
        return cedar_loading.load_dataset(parts, data_folder), ()

    return load


def _from_documents(docs: Sequence[Mapping[str, Any]]) -> datasets.Dataset:
    from culture_tasks.harness.decoded import DecodedDataset

    return DecodedDataset(docs)


LOADERS: Mapping[str, Loader] = {
    **{f"care_{language}": _care(language, english=False) for language in care_documents.LANGUAGES},
    **{f"care_en_{language}": _care(language, english=True) for language in care_documents.LANGUAGES},
    "culturalvqa": _culturalvqa("vlm"),
    "culturalvqa_lave3": _culturalvqa("vlm", "lave3"),
    "culturalvqa_fewshot": _culturalvqa("fewshot"),
    "culturalvqa_blind": _culturalvqa("blind"),
    "culturalvqa_country": _culturalvqa("country"),
    "culturalvqa_lens": _culturalvqa("lens"),
    **{name: crosscult_data.loader(name) for name in crosscult_tasks.TASKS},
    **{name: _cedar(parts) for name, parts in cedar_loading.DATASETS.items()},
}
"""The data sets that tasks are made of, by name."""

_loaded: dict[tuple[str, Path | None], datasets.Dataset] = {}
_ahead: dict[str, tuple[Settings, datasets.Dataset]] = {}
_lock = threading.Lock()


def load_ahead(names: Iterable[str]) -> None:
    """Loads and checks the data sets of a run before its model is loaded; :func:`load_for_evaluation` then has them.

    Args:
        names: The data sets; each is loaded once. Those of an earlier run are forgotten.

    Raises:
        CultureTasksError: As ``load_for_evaluation``, for the first that can't be used or graded.
    """
    _ahead.clear()
    loaded_ahead = {}
    for name in dict.fromkeys(names):
        data = load_for_evaluation(name)
        loaded_ahead[name] = (current_session().settings, data)
    _ahead.update(loaded_ahead)


def load_for_evaluation(name: str) -> datasets.Dataset:
    """Loads and checks a data set and makes sure that its judge can be used, before any inference.

    What :func:`load_ahead` has loaded with the same settings is neither loaded nor checked again.

    Raises:
        DataError: If the data can't be used.
        JudgeError: If nobody can grade.
        SettingsError: If an environment variable has a value that is not allowed.
    """
    session = renew_session()
    if name not in LOADERS:
        raise CultureTasksError(f"culture-tasks: no data set {name!r}.{nearest(name, LOADERS)}")
    settings, data = _ahead.get(name, (None, None))
    if data is not None and settings == session.settings:
        return data
    with extra_columns(session.settings.extra_columns):
        data, expected = LOADERS[name](session.settings.data_folder)
    _check_judges(session, expected)
    with _lock:
        _loaded[name, session.settings.data_folder] = data
    return data


def loaded(name: str) -> datasets.Dataset:
    """Returns a data set that this process has loaded, loading it if it hasn't."""
    key = (name, current_session().settings.data_folder)
    return _loaded[key] if key in _loaded else load_for_evaluation(name)


def _check_judges(session: Session, expected: Expected) -> None:
    by_model: dict[str, list[tuple[Rubric, JudgeItem]]] = {}
    for rubric, item in expected:
        by_model.setdefault(rubric.model, []).append((rubric, item))
    for model, items in by_model.items():
        session.judge(model).check(items)
