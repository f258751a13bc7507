"""Tiny models behind the adapter, and requests about the synthetic world."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from support.tiny_families import family
from support.tiny_world import Instance

from culture_tasks.benchmarks.crosscult.editions import PAPER
from culture_tasks.insertion.core.adapter import Answer, MultimodalModel
from culture_tasks.insertion.core.insertion_method import InsertionMethod
from culture_tasks.insertion.core.method_registry import method_class
from culture_tasks.insertion.core.requests import AnswerDecoding, Insertion, Request
from culture_tasks.insertion.core.runner import Case, CaseLoop, Costs
from culture_tasks.insertion.core.store import Store


@cache
def adapted(name: str) -> MultimodalModel:
    """Returns the model of a family, one for the process: a test leaves its weights as they were."""
    tiny = family(name)
    return MultimodalModel(tiny.model, tiny.processor, f"tiny {name}")


def ask(scenario: int = 0, number: int = 0, language: str = "en") -> Request:
    instance = Instance(scenario, number)
    return Request.about(instance.image(), instance.question(language), PAPER[language].system_prompt)


def insertion(scenario: int = 0, number: int = 0, language: str = "en") -> Insertion:
    return Insertion(ask(scenario, number, language), Instance(scenario, number).answer(language))


def made(name: str, model: MultimodalModel, **options: object) -> InsertionMethod:
    """Returns a method with options."""
    method = method_class(name)
    return method(model, method.read_config(options))


def answered(
    method: InsertionMethod,
    pairs: Sequence[tuple[Request, tuple[Insertion, ...]]],
    decoding: AnswerDecoding,
    *,
    store: Store | None = None,
    costs: Costs | None = None,
    alone: bool = False,
) -> list[Answer]:
    """Returns the answer to each request after its insertions, which are made in sorted order."""
    order = sorted(range(len(pairs)), key=lambda place: [sample.answer for sample in pairs[place][1]])
    cases = [Case(pairs[place][1], {place: pairs[place][0]}) for place in order]
    loop = CaseLoop(method, decoding, Store(None) if store is None else store, costs, one_at_a_time=alone)
    answers = dict(loop.answers(cases))
    return [answers[place] for place in range(len(pairs))]
