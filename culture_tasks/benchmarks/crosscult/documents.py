"""CrossCult-KIBench's cases as documents of a harness.

A document is one request, with all that has to be inserted before it. It needs no other document, no file and no state:
a model that can't insert anything answers the request alone, and its row is the paper's base model.
"""

from __future__ import annotations

from typing import TypedDict


class Insertion(TypedDict):
    """One insertion sample (i, q, a), without its image i: that is the document's ``insertion_image``.

    ``partition`` is the language-culture partition that the sample belongs to.
    """

    partition: str
    question: str
    answer: str


class CrossCultDoc(TypedDict):
    """One request of CrossCult-KIBench, its two images aside.

    The harness's data set adds two image columns: ``image``, which the request is about, and ``insertion_image``,
    which all of the document's insertions are about (a chain has one image: section 3.1). They are the same picture
    in reliability and cross-language locality, and where nothing is inserted. ``insertion_image`` is not decoded, but
    a mapping with the file at ``path``.

    Attributes:
        id: Different in each document of a task.
        case_id: The single-insert case, the sequential-insert chain or, in the diagnostic, the raw case. All tasks of
            a setting have the same cases in the same order, one document each.
        setting: ``diagnostic``, ``single``, ``sequential`` or ``retention``.
        role: What the request measures.
        scenario: Scenario of the inserted sample.
        topic: Topic of that scenario.
        partition: Partition whose inserted sample this request is about: the target of a single-insert case, the
            partition of ``step`` in a chain, the partition asked in the diagnostic.
        language: Language of the request, hence of its system prompt; another than ``partition`` in cross-language
            locality alone.
        order: Partitions in the order of their insertion; as many as ``insertions``, or more where a chain is cut off.
        step: Place of ``partition`` in ``order``, from 1; 0 without insertions.
        insertions: What is inserted before the request, the first first.
        wants_plain_answer: Whether the answer without insertions is wanted too, as in locality: a model that inserts
            then returns ``[answer, answer without insertions]``.
        question: The request.
        reference: The right answer; empty in locality, where the reference is what the model says without insertions.
        image_id: Raw case that ``image`` belongs to: equal where the images are.
        insertion_image_id: Raw case that ``insertion_image`` belongs to.
        request_scenario: Scenario of ``image``; another than ``scenario`` in locality on other scenarios alone.
        data: Fingerprint of the raw cases.
        draw: Fingerprint of the scenario split and of the pairing of cases.
    """

    id: str
    case_id: str
    setting: str
    role: str
    scenario: str
    topic: str
    partition: str
    language: str
    order: list[str]
    step: int
    insertions: list[Insertion]
    wants_plain_answer: bool
    question: str
    reference: str
    image_id: str
    insertion_image_id: str
    request_scenario: str
    data: str
    draw: str
