"""Tiny models behind the adapter, and requests about the synthetic world."""

from __future__ import annotations

from functools import cache

from support.tiny_families import family
from support.tiny_world import Instance

from culture_tasks.benchmarks.crosscult.editions import PAPER
from culture_tasks.insertion.core.adapter import MultimodalModel
from culture_tasks.insertion.core.insertion_method import InsertionMethod
from culture_tasks.insertion.core.method_registry import method_class
from culture_tasks.insertion.core.queries import Insertion, Query


@cache
def adapted(name: str) -> MultimodalModel:
    """Returns the model of a family, one for the process: a test leaves its weights as they were."""
    tiny = family(name)
    return MultimodalModel(tiny.model, tiny.processor, f"tiny {name}")


def ask(scenario: int = 0, number: int = 0, language: str = "en") -> Query:
    instance = Instance(scenario, number)
    return Query.about(instance.image(), instance.question(language), PAPER[language].system_prompt)


def insertion(scenario: int = 0, number: int = 0, language: str = "en") -> Insertion:
    return Insertion(ask(scenario, number, language), Instance(scenario, number).answer(language))


def made(name: str, model: MultimodalModel, **options: object) -> InsertionMethod:
    """Returns a method with options."""
    method = method_class(name)
    return method(model, method.read_config(options))
