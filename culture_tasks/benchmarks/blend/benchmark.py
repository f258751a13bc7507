"""BLEnD as a benchmark: 16 regions, asked in their language and in English, by two prompts, and multiple choice.

The rules of its SemEval task forbid training on its data: they are for evaluation alone.

Scores are fractions here, as the harnesses have them, and percent in the report, as in the paper. Over repeated runs a
score is the mean of the runs'.

SEM is the paper's soft exact match of a response with what people answered. The answers are tried from the one with
most votes to the one with fewest: those in the region's language first, then their English versions. The first that is
in the response is the hit. SEM-B counts a hit as 1, SEM-W as its votes divided by those of the answer with most.

The paper compares lemmas, with one package for each language; some of these need Java or are not on PyPI. The matcher
here is the same for all languages: an answer is in a response as a part of it, or if each of its tokens is among those
of the response. Both are folded first (see :func:`culture_tasks.text.tokens`), so that case, width, the script of
digits, Persian or Arabic yeh and kaf, Arabic diacritics and punctuation don't matter. Different forms of a word stay
different, so that a response in another form than the annotators' may be missed; the module ``official`` has the
paper's rule.

Compared on local answers of the release: of 1,000 answers to other questions, which are wrong, both rules accept the
same in Chinese, Korean and Assamese, while the paper's accepts 3 more in Hausa and 5 more in Arabic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from culture_tasks import vocabulary
from culture_tasks.benchmarks.blend.documents import (
    CHOICE_TABLE,
    PAPER_NAMES,
    BlendDoc,
    ChoiceDoc,
    Wording,
    annotation_table,
    check,
    load_choices,
    load_regions,
    prompt_table,
    regions_at_hand,
    topic_table,
)
from culture_tasks.benchmarks.blend.official import OFFICIAL_LANGUAGES, official_match, require
from culture_tasks.benchmarks.blend.regions import REGIONS, TOPICS, Region
from culture_tasks.benchmarks.choices import ACCURACY, PERCENT, UNPARSED, read_choice, score_choices
from culture_tasks.benchmarks.interface import (
    Benchmark,
    DataSet,
    Decoding,
    Documents,
    Entry,
    MeanScore,
    Prompt,
    Score,
    Task,
)
from culture_tasks.benchmarks.likelihood import by_likelihood
from culture_tasks.benchmarks.reporting import (
    MODEL,
    At,
    BenchmarkReport,
    ColumnSpec,
    ContrastSpec,
    FurtherScore,
    Groups,
    RunFacts,
    ScoreUnit,
    TableSpec,
    bars_by,
    columns_by,
)
from culture_tasks.data.checking import DataReport
from culture_tasks.data.tables import Table
from culture_tasks.prompt_files import PromptFile
from culture_tasks.settings import Settings
from culture_tasks.text import answer_in, folded, tokens

SEM_B, SEM_W = "sem_b", "sem_w"
OFFICIAL = "_official"  # ends the names of both where the paper's own matcher found the answers

_TITLES = {SEM_B: "SEM-B", SEM_W: "SEM-W"}
_TITLES |= {name + OFFICIAL: f"{title} by the paper's matcher" for name, title in _TITLES.items()}

Matcher: TypeAlias = Callable[[str, str, str], bool]
"""Says whether an answer, as released, is in a response after :func:`cleaned`, by the code of the answer's language."""

_DECODING = Decoding(max_tokens=512, top_p=1.0)
_PAPER = "BLEnD (Myung et al., 2024)"
_BY_REGION: Mapping[str, Any] = {
    "groups": {"region": tuple(region.label for region in REGIONS)},
    "equal_groups": "region",  # as in the paper
}
_table = partial(TableSpec, source=_PAPER, headers=MODEL)
_TOPICS = {topic: topic.replace("_", " ").capitalize() for topic in TOPICS}
_CARE_COLUMNS = {"Algeria": "Arabic", "China": "Chinese"}  # of CARE's Table 16, by region
_NOTE = "Decoding: the authors' code. The rules of its SemEval task forbid training on these data."


class Blend(Benchmark):
    """BLEnD (Myung et al., 2024)."""

    name = "blend"
    title = "BLEnD"
    paper = "Myung et al., 2024"
    data = "Hub nayeon212/BLEnD; prompts from the authors' repository; not for training"
    not_for_training = "the rules of its SemEval task forbid it: its data are for evaluation alone"

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns a task for each way of asking, two of multiple choice, and the ways with the paper's matcher."""
        ways = [(english, wording) for english in (False, True) for wording in PAPER_NAMES]
        choice = _multiple_choice()
        return (
            *(_short_answers(wording, english=english, official=False) for english, wording in ways),
            choice,
            by_likelihood(choice, lambda doc: [letter for letter, _ in doc["choices"]]),
            *(_short_answers(wording, english=english, official=True) for english, wording in ways),
        )

    def check(self, settings: Settings) -> DataReport:
        """Checks the questions, prompts and choices of all regions."""
        return check(settings)

    @cache  # noqa: B019 - one object a process
    def report(self) -> BenchmarkReport:
        """Returns the numbers by region and topic, in the region's language beside English, and in CARE's Table 16."""
        # The north of Nigeria isn't a part of it in ISO 3166-2, so its questions count as Nigeria's.
        codes = {"Assam": "IN-AS", "Northern Nigeria": "NG", "West Java": "ID-JB"}
        region_places = vocabulary.places((region.label for region in REGIONS), codes)
        sem_b = "SEM-B (percent)"
        return BenchmarkReport(
            groups={
                "region": Groups([region.label for region in REGIONS], places=region_places),
                "topic": Groups(_TOPICS),
            },
            splits=(("region",), ("topic",)),
            culture="region",
            further=(
                FurtherScore(SEM_W, PERCENT),
                FurtherScore(f"{SEM_W}{OFFICIAL}", PERCENT),
                FurtherScore(UNPARSED.name, UNPARSED.scale),
            ),
            tables=_tables,
            figures=tuple(
                bars_by(
                    field, key=f"{kind}_{field}s", title=f"{title} by {field}", source=_PAPER, value=value, units=units
                )
                for kind, title, value, units, fields in (
                    ("blend", "BLEnD", sem_b, _is_by_tokens, ("region", "topic")),
                    ("blend_official", "BLEnD, the paper's matcher,", sem_b, _is_official, ("region", "topic")),
                    ("blend_mcq", "BLEnD, multiple choice,", "Accuracy (percent)", _is_multiple_choice, ("region",)),
                )
                for field in fields
            ),
            contrasts=(
                ContrastSpec(
                    kind="language",
                    key="blend_languages",
                    title="BLEnD asked in English and in the region's language",
                    source=_PAPER,
                    beside=_is_beside,
                    splits=(("region",),),
                    words=("asked in English", "asked in the region's language"),
                    parts=("English", "Native"),
                    values={"score": sem_b},
                    groups="region",
                    series="asked in",
                    headers=MODEL,
                    panel=lambda number: f"{number.model} · {number.title}",
                ),
            ),
        )


def _short_answers(wording: Wording, *, english: bool, official: bool) -> Task:
    ending = "" if wording == "inst" else f"_{wording}"
    language, matcher = "English" if english else "the region's language", "; the paper's matcher" if official else ""
    way = f"asked in {language}{'' if wording == 'inst' else ' as a person from the region'}{matcher.replace(';', ',')}"
    regions = _regions(english=english, official=official)
    tables: list[Table[Any]] = [table(region) for region in regions for table in (annotation_table, topic_table)]
    if not english:
        tables += [prompt_table(region) for region in regions if region.language != "en"]
    return Task(
        name=f"blend{OFFICIAL * official}{'_en' * english}{ending}",
        about=f"short answers on everyday life, asked in {language} ({PAPER_NAMES[wording]}){matcher}",
        title=f"{Blend.title}, {way}",
        languages=("en",) if english else tuple(dict.fromkeys(region.language for region in regions)),
        metric=SEM_B + OFFICIAL * official,
        metrics=partial(metrics, official=official),
        data=DataSet(tuple(tables), partial(_documents, regions, wording, english=english, official=official)),
        prompt=lambda doc: Prompt((doc["prompt"],)),
        score=partial(score, official=official),
        decoding=_DECODING,
        target=_best_answer,
        note=_NOTE,
    )


def _regions(*, english: bool, official: bool = False) -> list[Region]:
    """Returns the regions that are asked in English, or in their language where a matcher knows it."""
    languages = OFFICIAL_LANGUAGES if official else [region.language for region in REGIONS]
    return [region for region in REGIONS if (region.language != "en" if english else region.language in languages)]


def _documents(
    regions: Sequence[Region], wording: Wording, settings: Settings, *, english: bool, official: bool
) -> Documents:
    regions = regions_at_hand(regions, settings)
    for language in dict.fromkeys("en" if english else region.language for region in regions) if official else ():
        require(language)
    return load_regions(regions, wording, settings, english=english)


def _best_answer(doc: BlendDoc) -> str:
    """Returns an answer with most votes; empty where the data count votes without an answer."""
    best = doc["annotations"][0]
    return next(iter(best["answers"] or best["en_answers"]), "")


def _multiple_choice() -> Task:
    return Task(
        name="blend_mcq",
        about="multiple choice on everyday life, in English",
        title=f"{Blend.title}, multiple choice",
        languages=("en",),
        metric=ACCURACY.name,
        metrics=lambda: tuple(replace(metric, **_BY_REGION) for metric in (ACCURACY, UNPARSED)),
        data=DataSet((CHOICE_TABLE,), load_choices),
        prompt=lambda doc: Prompt((doc["prompt"],)),
        score=score_choice,
        decoding=_DECODING,
        target=lambda doc: doc["answer"],
        note=_NOTE,
    )


class Hit(NamedTuple):
    """An answer in a response, and its votes divided by those of the answer with most: above 0, at most 1."""

    answer: str
    weight: float


def first_hit(annotations: Sequence[Mapping[str, Any]], response: str, language: str, matches: Matcher) -> Hit | None:
    """Returns the answer that counts for a response after :func:`cleaned`, or None; an empty response has no hit.

    SEM-B of a set of questions is the share that has a hit, SEM-W the mean of the hits' weights, where a question
    without one counts 0. Both are from 0 to 1 here (the paper prints percent); higher is better; SEM-W <= SEM-B.
    """
    for votes in annotations if response else ():
        for answers, answer_language in ((votes["answers"], language), (votes["en_answers"], "en")):
            for answer in answers:
                if matches(answer, response, answer_language):
                    return Hit(answer, votes["count"] / annotations[0]["count"])
    return None


_FULL_WIDTH = str.maketrans("：、，。", ":,,.")
_LABEL = re.compile(r"\w+:(?=\s)")  # such as "answer:" or "jawaban:" at the start of a response


def cleaned(response: str, prompt: str) -> str:
    """Returns a response without reasoning blocks as the paper compares it.

    The prompt is cut out where the model repeats it; four full-width marks become ASCII; all is in lower case; a label
    at the start goes wherever it stands, if the prompt has that word ("Answer:"); then the full stops around the rest.
    """
    text = response.replace(prompt, "").translate(_FULL_WIDTH).lower()
    label = _LABEL.match(text)
    if label and label.group().removesuffix(":") in prompt.translate(_FULL_WIDTH).lower():
        text = text.replace(label.group(), "")
    return text.strip().strip(".")


def token_match(answer: str, response: str, language: str) -> bool:  # noqa: ARG001
    """Whether an answer is a part of a response, or all of its tokens are among those of the response.

    Hyphens and blanks are one. An answer without a letter or digit is in no response.
    """
    answer_tokens = _tokens(answer)
    is_part = _folded(answer) in _folded(response)
    return bool(answer_tokens) and (is_part or answer_tokens <= _tokens(response))


_ASSAMESE = re.compile("[\u0980-\u09ff\u200c\u200d]+")
"""A word in the Bengali script. ``tokens`` would take its vowel signs for punctuation, and find one word in another."""


@lru_cache(maxsize=4096)
def _folded(text: str) -> str:
    return " ".join(folded(text).replace("-", " ").split())


@lru_cache(maxsize=4096)
def _tokens(text: str) -> frozenset[str]:
    plain = _folded(text)
    return frozenset((*_ASSAMESE.findall(plain), *tokens(_ASSAMESE.sub(" ", plain))))


@cache
def metrics(*, official: bool) -> tuple[MeanScore, ...]:
    """Returns the metrics of a task with short answers; with the paper's matcher, also the default matcher's."""
    names = [SEM_B + OFFICIAL, SEM_W + OFFICIAL, SEM_B, SEM_W] if official else [SEM_B, SEM_W]
    main, *further = (MeanScore(name=name, title=_TITLES[name], scale=PERCENT, **_BY_REGION) for name in names)
    return replace(main, groups={**main.groups, "topic": tuple(TOPICS)}), *further


def score(doc: BlendDoc, responses: Sequence[str], *, official: bool) -> Score:
    """Looks for the people's answers in the responses to a question."""
    texts = [cleaned(answer_in(response), doc["prompt"]) for response in responses]
    annotations, values = doc["annotations"], {}
    for ending, matches in (("", token_match), *([(OFFICIAL, official_match)] if official else ())):
        hits = [first_hit(annotations, text, doc["language"], matches) for text in texts]
        values[SEM_B + ending] = sum(hit is not None for hit in hits) / len(hits)
        values[SEM_W + ending] = sum(hit.weight for hit in hits if hit) / len(hits)
    return Score(
        item=doc["id"],
        responses=responses,
        question=doc["question"],
        references=tuple(dict.fromkeys(chain(*((*votes["answers"], *votes["en_answers"]) for votes in annotations)))),
        groups={name: doc[name] for name in ("region", "topic", "language")},
        cluster=doc["question_id"],
        data={"data": doc["data"]},
        prompt=PromptFile(doc["prompt_name"], doc["template"]),
        labels=tuple("" if hit is None else hit.answer for hit in hits),
        score=values.pop(SEM_B + ending),
        values=values,
    )


def score_choice(doc: ChoiceDoc, responses: Sequence[str]) -> Score:
    """Reads which choice the responses name."""
    labels = [read_choice(response, dict(doc["choices"])) for response in responses]
    return score_choices(
        doc,
        responses,
        labels,
        doc["answer"],
        question=doc["prompt"],
        references=(doc["answer"],),
        groups={"region": doc["region"], "language": "en"},
        cluster=doc["question_id"],
    )


def _is_multiple_choice(unit: str) -> bool:
    return unit.startswith("blend_mcq")


def _is_official(unit: str) -> bool:
    return unit.startswith(f"blend{OFFICIAL}")


def _is_by_tokens(unit: str) -> bool:
    return not (_is_multiple_choice(unit) or _is_official(unit))


def _is_in_english(unit: str) -> bool:
    return unit.startswith(("blend_en", f"blend{OFFICIAL}_en"))


def _tables(units: Iterable[ScoreUnit]) -> Iterator[TableSpec]:
    local_units: list[str] = []
    for unit in units:
        if _is_multiple_choice(unit.key):
            yield _region_table(unit.key, "score", "accuracy of multiple choice")
            yield _region_table(unit.key, UNPARSED.name, "replies that name no choice")
            continue
        ending, rule = (OFFICIAL, ", the paper's matcher") if _is_official(unit.key) else ("", "")
        yield _region_table(unit.key, "score", f"SEM-B{rule}")
        yield _region_table(unit.key, f"{SEM_W}{ending}", f"SEM-W{rule}")
        yield _table(
            key=f"{unit.key}_by_topic",
            title=f"{unit.key}: SEM-B{rule} in percent, by topic",
            columns=columns_by("topic", _TOPICS, unit.key),
        )
        if not _is_in_english(unit.key):
            local_units.append(unit.key)
    yield from _care_table(local_units)


def _region_table(unit: str, statistic: str, quantity: str) -> TableSpec:
    has_choices, in_english = _is_multiple_choice(unit), _is_in_english(unit)
    columns = [
        ColumnSpec(
            region.slug,
            region.label,
            At(unit, statistic, (("region", region.label),)),
            vocabulary.language("en" if has_choices or in_english else region.language).name,
        )
        for region in (REGIONS if has_choices else _regions(english=in_english, official=_is_official(unit)))
    ]
    columns.append(ColumnSpec("average", "Average", At(unit, statistic), sums_up=True))
    notes = ["Average: the mean over the regions, each of which weighs the same."]
    if has_choices and statistic == "score":
        columns.append(ColumnSpec(UNPARSED.name, "Unparsed", At(unit, UNPARSED.name)))
        notes.append("Unparsed: the share of replies that name no choice, which count as wrong.")
    return _table(
        key=f"{unit}_{statistic}_by_region",
        title=f"{unit}: {quantity} in percent, by region",
        columns=tuple(columns),
        notes=tuple(notes),
    )


def _care_table(units: Sequence[str]) -> Iterator[TableSpec]:
    columns = tuple(
        ColumnSpec(f"{unit}_{name.lower()}", label, At(unit, where=(("region", name),)), over=unit)
        for unit in units
        for name, label in _CARE_COLUMNS.items()
    )
    if columns:
        yield TableSpec(
            key="blend_as_in_care",
            title="BLEnD: SEM-B in percent, in the languages of CARE's generalisation table",
            source="CARE, Figure 4 and Table 16",
            columns=columns,
            headers=MODEL,
            notes=(
                "CARE prints an accuracy, and says neither by which match nor with which prompt; its Arabic is taken "
                "to be Algeria's. Its numbers are therefore in a separate table.",
            ),
        )


def _is_beside(first: RunFacts, second: RunFacts) -> bool:
    """Whether one run asks in English the questions that another run of the model asks in the region's language."""
    return first.task == re.sub(rf"^blend({OFFICIAL})?", r"\g<0>_en", second.task) and first.row == second.row


BENCHMARK = Blend()
