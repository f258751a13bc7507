"""Training cases from CrossCult-KIBench's training scenarios."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import get_args

from culture_tasks.benchmarks.crosscult.documents import CrossCultDoc
from culture_tasks.benchmarks.crosscult.pictures import Pictures
from culture_tasks.benchmarks.crosscult.prompts import system_prompt
from culture_tasks.benchmarks.crosscult.release import load_release
from culture_tasks.benchmarks.crosscult.vocabulary import SINGLE_ROLES
from culture_tasks.data.fingerprint import fingerprint
from culture_tasks.errors import DataError
from culture_tasks.insertion.interface import TrainingData
from culture_tasks.insertion.queries import Insertion, Message, Negative, NegativeKind, Query, TrainingCase
from culture_tasks.insertion.state import DataFacts

_NEGATIVE_KINDS: Mapping[str, NegativeKind] = {kind: kind for kind in get_args(NegativeKind)}

Ask = Callable[[str, str, str], Query]
"""Makes a query of the raw case whose image it is about, a language and a question."""

AnswerOf = Callable[[str, str], str]
"""The data's own answer of a raw case in a language; documents of locality don't hold it."""


def load_training_data(data_folder: Path | None, limit: int | None = None) -> TrainingData:
    """Loads the single-insert training cases (Table 1: 11,600), with their images checked.

    Args:
        data_folder: The user's data folder, or None for the Hub.
        limit: Take this many, evenly spaced over all; None takes all.

    Raises:
        DataError: If the data can't be used, an image is missing or broken, or no scenario is for training.
    """
    release = load_release(data_folder)
    by_role = {role: list(release.single(role, train=True)) for role in SINGLE_ROLES}
    rows = list(zip(*by_role.values(), strict=True))
    if not rows:
        raise DataError("insertion: no scenario is for training. Needed are some whose 'split' is 'train'.")
    chosen = rows if limit is None else [rows[index * len(rows) // limit] for index in range(min(limit, len(rows)))]
    documents = [document for row in chosen for document in row]
    ids = list(dict.fromkeys(document["image_id"] for document in documents))
    files = dict(zip(ids, Pictures(release.raw).files(release.rows_of(ids)), strict=True))
    cases = {case.id: case for case in release.raw.cases}

    def answer(image_id: str, language: str) -> str:
        return next(sample.answer for code, sample in cases[image_id].samples.items() if code == language)

    return from_documents(documents, asking(files), answer)


def asking(files: Mapping[str, str]) -> Ask:
    """Returns what makes queries of images on disk, as the tasks phrase them: one object for equal requests.

    Args:
        files: The image of each raw case.
    """
    made: dict[tuple[str, str, str], Query] = {}

    def ask(image_id: str, language: str, question: str) -> Query:
        def load() -> Sequence[Message]:
            from PIL import Image

            with Image.open(files[image_id]) as image:
                return Query.about(image.convert("RGB"), question, system_prompt(language)).messages()

        return made.setdefault((image_id, language, question), Query(question, load))

    return ask


def from_documents(documents: Iterable[CrossCultDoc], ask: Ask, answer: AnswerOf) -> TrainingData:
    """Puts the documents of each case together.

    Args:
        documents: Documents of the four single-insert roles; those of a case share its ``case_id``.
        ask: Makes their queries.
        answer: Knows the answers to them.

    Raises:
        DataError: If a case has another number of insertions than one.
    """
    by_case: dict[str, list[CrossCultDoc]] = {}
    for document in documents:
        by_case.setdefault(document["case_id"], []).append(document)
    everything = [document for case in by_case.values() for document in case]
    facts = DataFacts(
        raw=everything[0]["data"] if everything else "",
        cases=fingerprint({**document} for document in everything),
        count=len(by_case),
        scenarios=tuple(sorted({document["scenario"] for document in everything})),
    )
    return TrainingData([_case(case, ask, answer) for case in by_case.values()], facts)


def _case(documents: Sequence[CrossCultDoc], ask: Ask, answer: AnswerOf) -> TrainingCase:
    first = documents[0]
    if len(first["insertions"]) != 1:
        raise DataError(
            f"insertion: case {first['case_id']!r} has {len(first['insertions'])} insertions. Training cases have one."
        )
    sample = first["insertions"][0]
    inserted = ask(first["insertion_image_id"], sample["partition"], sample["question"])
    asked = [(_query(document, ask), answer(document["image_id"], document["language"])) for document in documents]
    items = list(zip((document["role"] for document in documents), asked, strict=True))
    return TrainingCase(
        case_id=first["case_id"],
        scenario=first["scenario"],
        insertion=Insertion(inserted, sample["answer"]),
        generality=tuple(Insertion(*item) for role, item in items if role == "generality"),
        locality=tuple(Negative(*item, _NEGATIVE_KINDS[role]) for role, item in items if role in _NEGATIVE_KINDS),
    )


def _query(document: CrossCultDoc, ask: Ask) -> Query:
    return ask(document["image_id"], document["language"], document["question"])
