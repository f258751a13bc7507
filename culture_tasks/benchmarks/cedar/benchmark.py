"""CEDAR as a benchmark: two modalities, all languages pooled, one language, and every pair of prompt and data.

The main metric ``acc`` is the mean of the documents' scores, each the share of a document's runs that are right. Every
other metric gets its labels, ``(language, gold, prediction)`` with one prediction per run, from which all of them can
be worked out.

Where ``CULTURE_TASKS_LANGUAGES`` names the languages that the model officially supports, the pooled tasks leave the
documents of all others out of every metric, as the hyphens of Table 1 do: ``acc``, ``unparsed``, ``acc_avg``,
``acc_var``, GEPP and GRQB are those of the supported languages, and there is no ``acc_<language>`` of another. The
other documents are asked and logged all the same. The tasks of one language report it either way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, lru_cache, partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from annotated_types import Len
from pydantic import AfterValidator

from culture_tasks.benchmarks.cedar import metrics as measures
from culture_tasks.benchmarks.cedar.documents import (
    NO_MINORITY,
    SOURCES,
    Source,
    label_problems,
    labels_of,
    load,
    prompt_file,
)
from culture_tasks.benchmarks.cedar.labels import (
    EMOTIONS,
    LANGUAGE_NAMES,
    LANGUAGES,
    MODALITIES,
    PAIRS,
    PREDICTION,
    QUADRANT_NAMES,
    Language,
    Modality,
    pair_of,
)
from culture_tasks.benchmarks.cedar.metrics import Floats, Replies, indicators, replies_of, top2_macro_f1
from culture_tasks.benchmarks.cedar.reading.spelling import fold
from culture_tasks.benchmarks.interface import (
    Benchmark,
    ComputedScore,
    DataSet,
    Decoding,
    Doc,
    Entry,
    Group,
    MeanScore,
    Metric,
    Picture,
    Prompt,
    Scale,
    Score,
    Task,
)
from culture_tasks.benchmarks.own_culture import CultureBenchmark, CultureFile, LikeBenchmark, Line, Ratings
from culture_tasks.benchmarks.reporting import BenchmarkReport
from culture_tasks.data.checking import DataReport, check_tables, count
from culture_tasks.data.rows import one_of
from culture_tasks.metrics.means import Mean, mean_and_error
from culture_tasks.prompt_files import PromptFile
from culture_tasks.settings import Settings

if TYPE_CHECKING:
    from culture_tasks.benchmarks.cedar.reading.reader import OwnWords

ACC, TOP2, UNPARSED = "acc", "top2_macro_f1", "unparsed"

PERCENT = Scale("percent", 0.0, 100.0, times=100.0)
UNREAD = Scale("percent", 0.0, 100.0, better="lower", times=100.0)
RATIO = Scale("ratio", 0.0, None, better=None, neutral=1.0)
BIAS = Scale("percent", -100.0, 100.0, better=None, neutral=0.0, times=100.0)
VARIANCE = Scale("squared percent", 0.0, None, better="lower", digits=1, times=10_000.0)
F1 = Scale("share", 0.0, 1.0, digits=3)
"""The scales of the paper's tables. Harnesses have fractions, and the variance of fractions."""

Kind: TypeAlias = Literal["pooled", "language", "pairs"]
"""All languages together, one language, or all prompt languages on all data languages."""

_ABOUT: Mapping[Kind, str] = {
    "pooled": "emotion of a scene, all languages, GEPP and GRQB",
    "language": "emotion of a scene, one language, LSEPP and LSRQB",
    "pairs": "every prompt language on every data language (section 4.4)",
}
_FIGURE = {"text": "Figure 10", "multimodal": "Figure 9"}
_SHOWN = {"text": "text alone", "multimodal": "images"}


def _of_all_emotions(words: Mapping[str, list[str]]) -> Mapping[str, list[str]]:
    """Refuses words that leave out an emotion, or are alike as replies are read."""
    if missing := [emotion for emotion in EMOTIONS if not words.get(emotion)]:
        raise ValueError(f"Expected at least one word of each emotion; there is none of {', '.join(missing)}")
    owners: dict[str, str] = {"": "no emotion"}  # a word without letters
    for emotion, form in ((emotion, form) for emotion, forms in words.items() for form in forms):
        if (owner := owners.setdefault(fold(form).strip(), emotion)) != emotion:
            raise ValueError(f"Expected different words; {form!r} is one of {owner} and of {emotion}")
    return words


def _with_slots(text: str) -> str:
    if set(re.findall(r"\{([a-z_]+)\}", text)) != {"narrative", "question"}:  # the slots of a prompt file
        raise ValueError("Expected a text with the slots {narrative} and {question}, and no others")
    return text


class CedarFile(CultureFile):
    """What ``culture.toml`` says of a culture like CEDAR: the words of emotions, and the prompts of its modalities."""

    words: Annotated[Mapping[Annotated[str, one_of(EMOTIONS)], list[Line]], AfterValidator(_of_all_emotions)]
    prompts: Annotated[Mapping[Modality, Annotated[str, AfterValidator(_with_slots)]], Len(min_length=1)]


def _f1_of_people(predictions: Sequence[Any], golds: Sequence[Any]) -> float:
    replies = replies_of((None, *labels) for labels in zip(golds, predictions, strict=True))
    return top2_macro_f1(replies, indicators([None] * len(golds)))


class CedarCulture(CultureBenchmark):
    """A language or scenes of the user's."""

    file_model = CedarFile
    ratings = Ratings(level="nominal", labels=EMOTIONS, measures={"macro F1": _f1_of_people})  # Table 2

    def __init__(self, folder: Path, file: CultureFile, like: Benchmark) -> None:
        super().__init__(folder, file, like)
        assert isinstance(file, CedarFile)
        self.labels = {fold(word).strip(): emotion for emotion in EMOTIONS for word in file.words[emotion]}
        self.prompts = {kind: PromptFile(f"{kind}_{file.name}.own", text) for kind, text in file.prompts.items()}

    @cached_property
    def words(self) -> OwnWords:
        """Its words in replies."""
        from culture_tasks.benchmarks.cedar.reading.reader import OwnWords

        return OwnWords(self.file.language, self.labels)

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns a task for each modality that has a prompt, and a group of them where there are both."""
        tasks = []
        for modality in self.prompts:
            name, title = f"{self.name}_{modality}", f"{self.title}, {_SHOWN[modality]}"
            tasks.append(task_of(name, title, "language", [self._source(modality)], own=self))
        about, members = "emotion of a scene, both modalities", tuple(task.name for task in tasks)
        group = Group(name=self.name, about=about, title=self.title, members=members)
        return tasks if len(tasks) == 1 else (group, *tasks)

    def report(self) -> BenchmarkReport:
        """Returns accuracy and both biases, without a published number beside them."""
        from culture_tasks.benchmarks.cedar.report import report_of_culture

        return report_of_culture(self.file.name, self.file.title, self.file.place)

    def _source(self, modality: Modality) -> Source:
        labels = {**labels_of("en"), **self.labels}
        table = SOURCES[modality, "en"].table.of_culture(
            self.folder,
            modality,
            rules=partial(label_problems, labels),
            counts=lambda rows: [count(f"{modality}: items", len(rows))],
        )
        return Source(modality, self.file.language, labels, table)


class Cedar(LikeBenchmark):
    """CEDAR (Dai et al., 2026)."""

    name = "cedar"
    title = "CEDAR"
    paper = "Dai et al., 2026"
    data = "local folder; the full data by request"
    made_from = ("ArabCulture", "Casa", "Cultural Atlas", "CulturalBench", "CultureBank", "JETHICS")
    culture = CedarCulture

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns the pooled tasks and, for each modality, the tasks of one language and of section 4.4."""
        members = tuple(f"cedar_{modality}" for modality in MODALITIES)
        group = Group(name="cedar", about="emotion of a scene, both modalities", title=self.title, members=members)
        kinds: list[tuple[str, str, Kind, tuple[Language, ...]]] = [
            ("", "", "pooled", LANGUAGES),
            *((f"_{code}", f", {LANGUAGE_NAMES[code]}", "language", (code,)) for code in LANGUAGES),
            ("_matrix", ", prompts and data in all languages", "pairs", LANGUAGES),
        ]
        entries: list[Entry] = [group]
        for modality in MODALITIES:
            for ending, words, kind, languages in kinds:
                name, title = f"cedar_{modality}{ending}", f"{self.title}, {_SHOWN[modality]}{words}"
                entries.append(task_of(name, title, kind, [SOURCES[modality, language] for language in languages]))
        return entries

    def report(self) -> BenchmarkReport:
        """Returns the numbers, tables and figures of the paper."""
        from culture_tasks.benchmarks.cedar.report import REPORT

        return REPORT

    def check(self, settings: Settings) -> DataReport:
        """Checks the modalities that there are files of; counts that differ from Table 4 are no problem."""
        there = {source.modality for source in SOURCES.values() if source.table.files(settings)} or set(MODALITIES)
        tables = [source.table for source in SOURCES.values() if source.modality in there]
        return check_tables(self.name, settings, tables)


def task_of(name: str, title: str, kind: Kind, sources: Sequence[Source], own: CedarCulture | None = None) -> Task:
    """Returns a task of CEDAR, or of an own culture."""
    modality = sources[0].modality
    build = partial(load, sources, prompts=LANGUAGES if kind == "pairs" else (), is_own=own is not None)
    return Task(
        name=name,
        about=f"{_ABOUT[kind]} ({_FIGURE[modality]})" if kind == "pooled" else _ABOUT[kind],
        title=title,
        languages=tuple(source.language for source in sources),
        metric=ACC,
        metrics=partial(metrics, kind),
        data=DataSet(tuple(source.table for source in sources), build),
        prompt=partial(render, own=own),
        score=partial(score, kind=kind, own=own),
        decoding=Decoding(max_tokens=128, top_p=1.0),  # Appendix C
        shows_images=modality == "multimodal",
        target=itemgetter("gold"),
    )


def _prompt_of(doc: Doc, own: CedarCulture | None) -> PromptFile:
    return own.prompts[doc["modality"]] if own else prompt_file(doc["prompt_language"], doc["modality"])


def render(doc: Doc, own: CedarCulture | None = None) -> Prompt:
    """Returns the prompt for an item (Figures 9 and 10): one user message, after the image where there is one.

    An empty narrative leaves its line empty, as filling in the paper's template does.
    """
    text = _prompt_of(doc, own).fill({"narrative": doc["narrative"], "question": doc["question"]})
    return Prompt((Picture(), text) if doc["modality"] == "multimodal" else (text,))


@cache
def metrics(kind: Kind) -> tuple[Metric, ...]:
    """Returns the metrics of the tasks of all languages together, of one language, or of pairs.

    In a table of one language the global biases are the local ones, LSEPP and LSRQB (equations 1 and 2).
    """
    is_pooled = kind == "pooled"
    propensity, bias = ("gepp", "grqb") if is_pooled else ("lsepp", "lsrqb")
    found: list[Metric] = [
        MeanScore(name=ACC, title="accuracy", scale=PERCENT, groups={"language": LANGUAGES} if is_pooled else {}),
        _mean_of("replies without an emotion", UNREAD, measures.unparsed_share, name=UNPARSED),
    ]
    if is_pooled:
        found += [
            _mean_of("accuracy, mean over languages", PERCENT, _average, name="acc_avg"),
            ComputedScore(name="acc_var", title="variance of accuracy over languages", scale=VARIANCE, value=_variance),
        ]
    for emotion in EMOTIONS:
        measure = partial(_of_part, measures.gepp, emotion)
        found.append(_mean_of(f"{propensity.upper()} of {emotion}", RATIO, measure, name=f"{propensity}_{emotion}"))
    for number, quadrant in enumerate(QUADRANT_NAMES, start=1):
        measure = partial(_of_part, measures.grqb, quadrant)
        found.append(_mean_of(f"{bias.upper()} of quadrant {quadrant}", BIAS, measure, name=f"{bias}_q{number}"))
    found.append(ComputedScore(name=TOP2, title="macro F1, either of two labels", scale=F1, value=_top2))
    return tuple(replace(metric, groups={"pair": tuple(PAIRS)}) if kind == "pairs" else metric for metric in found)


def _mean_of(title: str, scale: Scale, measure: Callable[[Replies], Floats], *, name: str) -> ComputedScore:
    """Returns a metric that is the mean of one value for each document."""

    def mean(values: Sequence[Any], clusters: Sequence[Hashable] | None = None) -> Mean:
        return mean_and_error(measure(_replies(tuple(values))), clusters)

    return ComputedScore(
        name=name,
        title=title,
        scale=scale,
        value=lambda values: mean(values).value,
        stderr=lambda values, clusters: mean(values, clusters).error,
    )


def _of_part(measure: Callable[[Replies], Mapping[Any, Floats]], part: str, replies: Replies) -> Floats:
    return measure(replies)[part]


def _average(replies: Replies) -> Floats:
    return measures.acc_avg(replies.scores, replies.languages)


_replies = lru_cache(maxsize=64)(replies_of)  # all metrics of a task, or of its pairs, are of the same documents


def _variance(values: Sequence[Any]) -> float:
    replies = _replies(tuple(values))
    return measures.acc_var(replies.scores, replies.languages)


def _top2(values: Sequence[Sequence[Any]]) -> float:
    """Macro F1 against the two most frequent annotations (Appendix B), from gold label, minority and predictions."""
    replies = replies_of((None, gold, *runs) for gold, _, *runs in values)
    return top2_macro_f1(replies, indicators([minority for _, minority, *_ in values]))


def score(doc: Doc, responses: Sequence[str], *, kind: Kind = "language", own: CedarCulture | None = None) -> Score:
    """Reads the replies to a question, one per run; its score is the share of right ones.

    Every document has every metric, with None where it is left out: the harnesses expect lists of one length.
    """
    from culture_tasks.benchmarks.cedar.reading.reader import read_reply  # its word lists take a while to prepare

    predictions = [read_reply(response, own.words if own else None) for response in responses]
    counts = doc["supported"] or kind != "pooled"
    languages = (doc["prompt_language"], doc["language"]) if kind == "pairs" else (doc["language"],)
    labels = (None if own else doc["language"], doc["gold"], *predictions) if counts else None
    names = [metric.name for metric in metrics(kind) if metric.name not in (ACC, TOP2)]
    values: dict[str, Any] = dict.fromkeys(names, labels)
    if doc["minority"]:
        minority = None if doc["minority"] == NO_MINORITY else doc["minority"]
        values[TOP2] = (doc["gold"], minority, *predictions) if counts else None
    return Score(
        item=" ".join((*((own.file.name,) if own else languages), doc["id"])),
        responses=responses,
        question="\n".join(part for part in (doc["narrative"], doc["question"]) if part),
        references=(doc["gold"],),
        groups={
            "language": doc["language"],
            "prompt_language": doc["prompt_language"],
            "gold": doc["gold"],
            **{PREDICTION if run == 1 else f"{PREDICTION}_{run}": label for run, label in enumerate(predictions, 1)},
            "supported": str(doc["supported"]),
            **({"pair": pair_of(*languages)} if kind == "pairs" else {}),
            **({"minority": doc["minority"]} if doc["minority"] else {}),
            **({"culture": own.file.name} if own else {}),
        },
        cluster=f"{doc['modality']} {doc['id']}",
        image=doc["id"] if doc["modality"] == "multimodal" else "",
        data={"data": doc["data"]},
        prompt=_prompt_of(doc, own),
        facts={"modality": doc["modality"]},
        labels=predictions,
        score=sum(label == doc["gold"] for label in predictions) / len(predictions) if counts else None,
        values=values,
    )


BENCHMARK = Cedar()
