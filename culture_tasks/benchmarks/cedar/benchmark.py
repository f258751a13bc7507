"""CEDAR as a benchmark: two modalities, all languages pooled, one language, and every pair of prompt and data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from operator import itemgetter
from pathlib import Path

from culture_tasks.benchmarks.cedar.documents import SOURCES, AddedCulture, check, load_languages, render
from culture_tasks.benchmarks.cedar.labels import LANGUAGE_NAMES, LANGUAGES, MODALITIES, Language, Modality
from culture_tasks.benchmarks.cedar.scoring import ACC, metrics, score
from culture_tasks.benchmarks.culture_forms import CultureForm
from culture_tasks.benchmarks.cultures import BuiltCulture, OffersCultures
from culture_tasks.benchmarks.interface import Benchmark, DataSet, Decoding, Entry, Group, Tag, Task
from culture_tasks.benchmarks.reporting import BenchmarkReport
from culture_tasks.data.checking import DataReport

_FIGURE = {"text": "Figure 10", "multimodal": "Figure 9"}
_SHOWN = {"text": "text alone", "multimodal": "images"}


class Cedar(Benchmark, OffersCultures):
    """CEDAR (Dai et al., 2026)."""

    name = "cedar"
    title = "CEDAR"
    paper = "Dai et al., 2026"
    data = "local folder; the full data by request"
    made_from = ("ArabCulture", "Casa", "Cultural Atlas", "CulturalBench", "CultureBank", "JETHICS")

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns the pooled tasks and, for each modality, those of one language and those of section 4.4."""
        both = Group(
            name="cedar",
            about="emotion of a scene, both modalities",
            title=self.title,
            members=tuple(f"cedar_{modality}" for modality in MODALITIES),
        )
        return (both, *(entry for modality in MODALITIES for entry in _entries(modality)))

    def report(self) -> BenchmarkReport:
        """Returns the numbers, tables and figures of the paper."""
        from culture_tasks.benchmarks.cedar.report import REPORT

        return REPORT

    def check(self, data_folder: Path | None) -> DataReport:
        """Checks whichever modalities are there."""
        return check(data_folder)

    def culture_form(self) -> CultureForm:
        """Returns how a further language is added, or how new scenes are made."""
        from culture_tasks.benchmarks.cedar.culture import FORM

        return FORM

    def culture(self, built: BuiltCulture) -> Benchmark:
        """Returns the benchmark of a language or of scenes that a group has added."""
        from culture_tasks.benchmarks.cedar.built import BuiltCedar

        return BuiltCedar(built)


def _entries(modality: Modality) -> Iterator[Entry]:
    name = f"cedar_{modality}"
    about = f"emotion of a scene, all languages, GEPP and GRQB ({_FIGURE[modality]})"
    title = f"{Cedar.title}, {_SHOWN[modality]}"
    yield _task(name, about, title, modality, LANGUAGES)
    for language in LANGUAGES:
        about = "emotion of a scene, one language, LSEPP and LSRQB"
        yield _task(f"{name}_{language}", about, f"{title}, {LANGUAGE_NAMES[language]}", modality, (language,))
    about = "every prompt language on every data language (section 4.4)"
    pairs = [
        _task(
            f"{name}_prompt_{prompt}_data_{data}",
            about,
            f"{title}, prompt in {LANGUAGE_NAMES[prompt]}, data in {LANGUAGE_NAMES[data]}",
            modality,
            (data,),
            prompt,
        )
        for prompt in LANGUAGES
        for data in LANGUAGES
    ]
    yield Tag(name=f"{name}_matrix", about=about, members=tuple(pair.name for pair in pairs))
    yield from pairs


def _task(
    name: str,
    about: str,
    title: str,
    modality: Modality,
    languages: tuple[Language, ...],
    prompt_language: Language | None = None,
) -> Task:
    data = DataSet(
        tuple(SOURCES[modality, language] for language in languages),
        partial(load_languages, modality, languages, prompt_language),
    )
    asked_in = languages if prompt_language is None else (prompt_language,)
    task = task_of(name, about, title, modality, asked_in, data, is_pooled=len(languages) > 1)
    return replace(task, tag=f"cedar_{modality}_matrix") if prompt_language else task


def task_of(
    name: str,
    about: str,
    title: str,
    modality: Modality,
    languages: tuple[str, ...],
    data: DataSet,
    *,
    is_pooled: bool = False,
    added: AddedCulture | None = None,
) -> Task:
    """Returns a task of CEDAR, or of a culture that was added to it."""
    return Task(
        name=name,
        about=about,
        title=title,
        languages=languages,
        metric=ACC,
        metrics=partial(metrics, is_pooled=is_pooled),
        data=data,
        prompt=partial(render, added=added) if added else render,
        score=partial(score, is_pooled=is_pooled, added=added) if added else partial(score, is_pooled=is_pooled),
        decoding=Decoding(max_tokens=128, top_p=1.0),
        shows_images=modality == "multimodal",
        target=itemgetter("gold"),
        note="Decoding: Appendix C.",
    )


BENCHMARK = Cedar()
