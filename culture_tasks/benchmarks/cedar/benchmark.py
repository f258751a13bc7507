"""CEDAR as a benchmark: two modalities, all languages pooled, one language, and every pair of prompt and data."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cache, partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from culture_tasks.benchmarks.cedar.documents import (
    NO_MINORITY,
    SOURCES,
    CedarDoc,
    LanguageQuestions,
    check_languages,
    load,
)
from culture_tasks.benchmarks.cedar.labels import LANGUAGES, MODALITIES, Language, Modality
from culture_tasks.benchmarks.cedar.prompts import render
from culture_tasks.benchmarks.cedar.scoring import ACC, metrics, score
from culture_tasks.benchmarks.interface import Benchmark, DataSet, Decoding, Documents, Entry, Group, Tag, Task
from culture_tasks.data.checking import DataReport
from culture_tasks.data.images import image_column
from culture_tasks.settings import Settings

if TYPE_CHECKING:
    import datasets

    from culture_tasks.benchmarks.reporting import BenchmarkReport

_FIGURE = {"text": "Figure 10", "multimodal": "Figure 9"}


class Cedar(Benchmark):
    """CEDAR (Dai et al., 2026)."""

    name = "cedar"
    title = "CEDAR"
    paper = "Dai et al., 2026"
    data = "local folder; the full data by request"

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns the pooled tasks and, for each modality, those of one language and those of section 4.4."""
        both = Group(
            name="cedar",
            about="emotion of a scene, both modalities",
            members=tuple(f"cedar_{modality}" for modality in MODALITIES),
        )
        return (both, *(entry for modality in MODALITIES for entry in _entries(modality)))

    def report(self) -> BenchmarkReport:
        """Returns the numbers, tables and figures of the paper."""
        from culture_tasks.benchmarks.cedar.report import REPORT

        return REPORT

    def check(self, data_folder: Path | None) -> DataReport:
        """Checks whichever modalities are there."""
        from culture_tasks.benchmarks.cedar.checking import check

        return check(data_folder)


def _entries(modality: Modality) -> Iterator[Entry]:
    name = f"cedar_{modality}"
    about = f"emotion of a scene, all languages, GEPP and GRQB ({_FIGURE[modality]})"
    yield _task(name, about, modality, LANGUAGES)
    for language in LANGUAGES:
        yield _task(f"{name}_{language}", "emotion of a scene, one language, LSEPP and LSRQB", modality, (language,))
    about = "every prompt language on every data language (section 4.4)"
    pairs = [
        _task(f"{name}_prompt_{prompt}_data_{data}", about, modality, (data,), prompt, tag=f"{name}_matrix")
        for prompt in LANGUAGES
        for data in LANGUAGES
    ]
    yield Tag(name=f"{name}_matrix", about=about, members=tuple(pair.name for pair in pairs))
    yield from pairs


def _task(
    name: str,
    about: str,
    modality: Modality,
    languages: tuple[Language, ...],
    prompt_language: Language | None = None,
    tag: str = "",
) -> Task:
    is_pooled = len(languages) > 1
    return Task(
        name=name,
        about=about,
        languages=languages if prompt_language is None else (prompt_language,),
        metric=ACC,
        metrics=partial(metrics, is_pooled=is_pooled),
        data=DataSet(
            tuple(SOURCES[modality, language] for language in languages),
            partial(_documents, modality, languages, prompt_language),
        ),
        prompt=render,
        score=partial(score, is_pooled=is_pooled),
        decoding=Decoding(max_tokens=128, top_p=1.0),
        shows_images=modality == "multimodal",
        target=_gold,
        tag=tag,
        note="Decoding: Appendix C.",
    )


def _documents(
    modality: Modality, languages: Sequence[Language], prompt_language: Language | None, settings: Settings
) -> Documents:
    """Loads languages of a modality, with their images where the modality has them.

    The languages take turns, so that a run with ``--limit`` has documents of them all.

    Raises:
        DataError: If the data are missing or can't be used.
        SettingsError: If the user's list of supported languages has an unknown code.
    """
    supported = check_languages(settings.languages)
    parts = [load(modality, language, settings.data_folder, prompt_language) for language in languages]
    order = _in_turns([len(part.documents) for part in parts])
    rows = _marked([doc for part in parts for doc in part.documents], supported)
    if modality == "text":
        return Documents([rows[place] for place in order])

    import datasets

    checked: set[Path] = set()
    images = datasets.concatenate_datasets([_images(part, checked) for part in parts])
    return Documents([rows[place] for place in order], images.select(order) if len(parts) > 1 else images)


def _images(questions: LanguageQuestions, checked: set[Path]) -> datasets.Dataset:
    return image_column(questions.table, questions.image_names, questions.folder, checked)


def _in_turns(sizes: Sequence[int]) -> list[int]:
    """Returns the places of concatenated rows by turns: the first of each part, then the second of each."""
    starts = accumulate(sizes, initial=0)
    places = [(row, start + row) for start, size in zip(starts, sizes, strict=False) for row in range(size)]
    return [place for _, place in sorted(places)]


def _marked(docs: Sequence[CedarDoc], supported: Collection[str] | None) -> list[CedarDoc]:
    """Tells whether the model supports each document's language, and items without a minority label from data without.

    Where the data have minority labels at all, an item without one says so: all documents have the same metrics then.
    """
    none = NO_MINORITY if any(doc["minority"] for doc in docs) else ""
    return [
        CedarDoc(
            **{
                **doc,
                "minority": doc["minority"] or none,
                "supported": supported is None or doc["language"] in supported,
            }
        )
        for doc in docs
    ]


def _gold(doc: CedarDoc) -> str:
    return doc["gold"]


BENCHMARK = Cedar()
