"""The closed vocabularies of CrossCult-KIBench."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

Topic = Literal["social", "religious", "ethical"]  # of the World Values Survey (Table 1)
TOPICS: tuple[Topic, ...] = get_args(Topic)
TOPIC_NAMES: Mapping[Topic, str] = {
    "social": "Social Values, Attitudes & Stereotypes",
    "religious": "Religious Values",
    "ethical": "Ethical Values and Norms",
}

Part = Literal["train", "single", "sequential"]  # of the scenarios (Table 1); the last two are for the tests

Setting = Literal["diagnostic", "single", "sequential", "retention"]
"""The insertions before a request: nothing, one insertion, all insertions of a chain, or the first few of them."""

Role = Literal[
    "diagnostic", "reliability", "generality", "cross_language_locality", "cross_scenario_locality", "locality"
]
"""The quantity that a request measures (section 3.2). ``locality`` is the sequential setting's, on other scenarios."""

SINGLE_ROLES: tuple[Role, ...] = ("reliability", "generality", "cross_language_locality", "cross_scenario_locality")
SEQUENTIAL_ROLES: tuple[Role, ...] = ("reliability", "generality", "locality")
LOCALITY_ROLES: frozenset[str] = frozenset(("cross_language_locality", "cross_scenario_locality", "locality"))
"""Roles whose reference is the model's answer without any insertion."""
