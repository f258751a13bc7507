"""WorldCuisines as a benchmark: four types of questions, with options and without, in a small and a large set.

All scores are shares here, as the harnesses have them, and percent in the report, as in the paper. The paper's mean is
one over languages; every language has the same questions, so it is the mean over documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from operator import itemgetter
from typing import Any

from culture_tasks.benchmarks import choices
from culture_tasks.benchmarks.choices import ACCURACY, PERCENT, read_choice, score_choices
from culture_tasks.benchmarks.interface import (
    Benchmark,
    DataSet,
    Decoding,
    Doc,
    Entry,
    Group,
    MeanScore,
    Picture,
    Prompt,
    Score,
    Task,
    Variant,
)
from culture_tasks.benchmarks.reporting import Groups, ScoreUnit, TableSpec, columns_by, groups_of
from culture_tasks.benchmarks.worldcuisines.documents import (
    CODES,
    KNOWLEDGE_BASE,
    LANGUAGES,
    SETS,
    TYPES,
    Format,
    SetName,
    group_name,
    load,
    options_of,
    question_table,
)
from culture_tasks.data.checking import DataReport, check_tables
from culture_tasks.settings import Settings
from culture_tasks.text import answer_in
from culture_tasks.vocabulary import countries

GROUPS = {
    "language": Groups(LANGUAGES),
    "question": Groups({kind.name: kind.title for kind in TYPES}, of=itemgetter("type"), shown=False),
    # "Korea" of the knowledge base is none of them: it may be either
    "country": Groups(places=lambda _: countries(), shown=False),
}

_PERCENT = replace(PERCENT, digits=2)
_GROUPS = {"language": GROUPS["language"]}
_CHOICES = replace(ACCURACY, scale=_PERCENT, groups=_GROUPS)
AUTHORS = MeanScore(name="acc_authors", title="accuracy by the authors' reader", scale=_PERCENT)
UNPARSED = replace(choices.UNPARSED, scale=replace(_PERCENT, better="lower"))
ANY = MeanScore(name="contains", title="replies with the answer in any language", scale=_PERCENT, groups=_GROUPS)
DUAL = MeanScore(
    name="contains_dual", title="replies with the answer in the question's language or English", scale=_PERCENT
)
SINGLE = MeanScore(name="contains_single", title="replies with the answer in the question's language", scale=_PERCENT)
PUBLISHED: Mapping[Format, MeanScore] = {"choices": AUTHORS, "open": ANY}
"""The metrics that the authors publish, by form of answer."""


def authors_choice(reply: str) -> int | None:
    """Returns the option that the authors' script reads, whether or not there is such an option.

    The reply as a number, or else its first digits. Where a reply has no digits, the script looks for its text among
    the options and stores the option's number as a character, which it then compares with an integer: so such a reply
    never counts (``evaluation/score/score.py``).

    Examples:
        >>> authors_choice(" 3 "), authors_choice("Option 2. Naan"), authors_choice("Naan")
        (3, 2, None)
    """
    try:
        return int(reply)
    except ValueError:
        digits = re.search(r"\d{1,4300}", reply)  # int() takes no more
        return int(digits.group()) if digits else None


def score_choice(doc: Doc, responses: Sequence[str]) -> Score:
    """Reads which option the responses choose: by ``read_choice``, and by the authors' reader."""
    options = options_of(doc["prompt"])
    by_authors = [authors_choice(answer_in(response)) == int(doc["answer"]) for response in responses]
    return score_choices(
        doc,
        responses,
        [read_choice(response, options) for response in responses],
        doc["answer"],
        values={AUTHORS.name: sum(by_authors) / len(by_authors)},
        references=(f"{doc['answer']}. {options[doc['answer']]}",),
        **_shared(doc),
    )


def score_open(doc: Doc, responses: Sequence[str]) -> Score:
    """Looks in the responses for the answer in any language, in the question's or English, and in the question's."""
    answers_by_metric = {
        ANY.name: doc["references"],
        DUAL.name: (doc["answer"], doc["english"]),
        SINGLE.name: (doc["answer"],),
    }
    texts = [answer_in(response).lower() for response in responses]
    shares = {
        name: sum(any(answer.lower() in text for answer in answers) for text in texts) / len(texts)
        for name, answers in answers_by_metric.items()
    }
    return Score(
        item=doc["id"],
        responses=responses,
        references=doc["references"],
        data={"data": doc["data"]},
        score=shares.pop(ANY.name),
        values=shares,
        **_shared(doc),
    )


def _shared(doc: Doc) -> dict[str, Any]:
    return {
        "question": doc["prompt"],
        "groups": groups_of(doc, GROUPS),
        "cluster": doc["dish"],
        "image": doc["image_id"],
    }


_DECODING = Decoding(max_tokens=50)
VARIANTS: Mapping[Format, Variant] = {
    "choices": Variant("", "options", "", _DECODING, metrics=(_CHOICES, AUTHORS, UNPARSED), score=score_choice),
    "open": Variant("_open", "open answers", "", _DECODING, metrics=(ANY, DUAL, SINGLE), score=score_open),
}
"""The forms of answer. The prompts are in the data."""


class WorldCuisines(Benchmark):
    """WorldCuisines (Winata et al., 2025)."""

    name = "worldcuisines"
    title = "WorldCuisines"
    paper = "Winata et al., 2025"
    data = "Hub worldcuisines/vqa, images from worldcuisines/food-kb"
    made_from = ("Wikipedia", "Wikimedia Commons")
    groups = GROUPS
    culture_field = "language"
    ability = "perception"

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns a group for each set and form of answer, with a task for each type of question."""
        return tuple(entry for set_name in SETS for form in VARIANTS for entry in _entries(set_name, form))

    def check(self, settings: Settings) -> DataReport:
        """Checks the questions of both sets, and the user's own image files. The Hub's are checked by each run."""
        tables = [question_table(set_name, config) for set_name in SETS for config in ("task1", "task2")]
        return check_tables(self.name, settings, tables)

    def tables(self, units: Sequence[ScoreUnit]) -> Iterator[TableSpec]:
        """Yields each metric by type of question, as in the paper's tables, and the score by language."""
        for unit in units:
            form: Format = "open" if "_open" in unit.key else "choices"
            printed = {"form": form, "set": "large" if "_large" in unit.key else "small"}
            metrics = VARIANTS[form].facts["metrics"]
            for metric in metrics:
                statistic, is_whole = "score" if metric is metrics[0] else metric.name, len(unit.tasks) == len(TYPES)
                yield self.table(
                    f"{unit.key}_{statistic}_by_question",
                    f"{unit.key}: {metric.in_words}, by type of question",
                    columns_by("question", GROUPS["question"], unit.key, statistic, printed=printed, total="Average"),
                    notes=("Average: the mean over the types, each of which weighs the same.",),
                    papers=("worldcuisines_scores",) if metric is PUBLISHED[form] and is_whole else (),
                )
        yield from super().tables(units)


def _entries(set_name: SetName, form: Format) -> Iterator[Entry]:
    name, variant = group_name(set_name, form), VARIANTS[form]
    about = f"dishes and where they are from; {variant.title}, {set_name} set"
    title = f"{WorldCuisines.title}, {set_name} set, {variant.title}"
    metrics = variant.facts["metrics"]
    tasks = [
        Task(
            name=f"{name}_{kind.name}",
            about=about,
            title=f"{title}: {kind.title}",
            languages=CODES,
            metrics=lambda: metrics,
            data=DataSet((question_table(set_name, kind.config), KNOWLEDGE_BASE), partial(load, set_name, kind, form)),
            prompt=lambda doc: Prompt((Picture(), doc["prompt"])),
            score=variant.facts["score"],
            decoding=variant.decoding,
            shows_images=True,
            target=lambda doc: doc["answer"],
            note="Decoding: the authors' code.",
        )
        for kind in TYPES
    ]
    yield Group(
        name=name,
        about=about,
        title=title,
        members=tuple(task.name for task in tasks),
        means=tuple(metric.name for metric in metrics),
        weight_by_size=False,  # as in the paper, each type weighs the same
    )
    yield from tasks


BENCHMARK = WorldCuisines()
