"""What a group decides beforehand, and the partitions that follow from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from culture_tasks.benchmarks.crosscult.editions import PAPER, Partition
from culture_tasks.benchmarks.crosscult.vocabulary import PARTS
from culture_tasks.benchmarks.cultures import Config, Option
from culture_tasks.errors import DataError

PARTITION, SCENARIOS = "partition", "scenarios"
"""The two ways."""

FEWEST = 2
"""Cases of a scenario, and scenarios of a part: generality and locality need another one."""

_CONTRAST = re.compile(r"([a-z]{2,3})-([A-Z]{2}|arab)")  # a partition that the paper doesn't have, such as ja-JP


_DEFAULTS: Mapping[str, Mapping[str, bool | float | Sequence[str]]] = {
    PARTITION: {"contrasts": PAPER.codes, "parts": ("single",), "cases": 20},
    SCENARIOS: {
        "contrasts": ("en",),
        "scenarios": 12,
        "train_scenarios": 0,
        "sequential_scenarios": 2,
        "screeners": 1,
    },
}
_DEFAULTS_OF_BOTH: Mapping[str, bool | float | Sequence[str]] = {
    "targets": (),
    "chains": (),
    "system_prompts": (),
    "checkers": 2,
    "agree": 2,
    "most_unchanged_drafts": 0.5,
}
_CHOICES: Mapping[tuple[str, str], Sequence[str]] = {
    (PARTITION, "contrasts"): PAPER.codes,
    (PARTITION, "parts"): PARTS,
}
_ABOUT = {
    "contrasts": "The other partitions of each case; cross-language locality needs at least one. The paper has three. "
    "One in the culture's own language is left out, since nothing in a request would tell the two apart. Where the "
    "scenarios are your own, write another one as language and country, such as ja-JP; its natives answer, too.",
    "parts": "Parts of the published scenarios that get the new partition. 'train' is needed to fit methods, "
    "'sequential' for chains.",
    "cases": "How many cases of each scenario, drawn by the seed. The paper has 200; since cases of a scenario are "
    "alike, 20 of each give nearly as narrow intervals.",
    "scenarios": "Number of scenarios. The paper has 49. Cases of one scenario are alike, so ten scenarios in a test "
    "are the fewest for a comparison of models. Each part of the built culture needs 2.",
    "train_scenarios": "How many of them are for training insertion methods: 29 of the paper's 49.",
    "sequential_scenarios": "How many of them are for chains: 10 of the paper's 49. With 0 there are no chains.",
    "screeners": "How many people look at each image; it is kept if all keep it. The paper doesn't say how many did.",
    "targets": "Languages of the partitions that are inserted in the single-insert setting. The paper takes those on "
    "which models do worse (section 3.1). Empty means the culture's own.",
    "chains": "Orders in which the sequential setting inserts partitions, such as 'en-ko'; the paper has en-zh-ar. Of "
    "several, the first is that of the sequential tasks, and all are followed by the retention tasks. Empty means one "
    "chain, the culture's own partition last.",
    "system_prompts": "'Please answer briefly in one sentence.' (Figure 9) in each language that the paper doesn't "
    "have, such as 'ko: 한 문장으로 간단히 대답해 주세요.'",
    "checkers": "How many natives check each answer. The paper reports no check by natives.",
    "agree": "How many of them must say that it holds. The paper leaves it open.",
    "most_unchanged_drafts": "Largest share of answers that may be a model's draft which nobody changed. All of the "
    "paper's are a model's; where natives read drafts, they change many.",
}
_LEAST = {"scenarios": FEWEST, "cases": FEWEST, "screeners": 1, "checkers": 1, "agree": 1}


def options_of(way: str) -> Iterator[Option]:
    """Yields what a group decides beforehand."""
    for name, default in {**_DEFAULTS[way], **_DEFAULTS_OF_BOTH}.items():
        yield Option(name=name, default=default, about=_ABOUT[name], choices=_CHOICES.get((way, name), ()))


def check_options(config: Config) -> None:
    """Raises DataError for an option whose value makes no sense."""
    options = config.options
    for name, least in _LEAST.items():
        if options.get(name, least) < least:
            raise _refused(name, options[name], f"at least {least}")
    for name in ("train_scenarios", "sequential_scenarios"):
        if 0 != options.get(name, 0) < FEWEST:
            raise _refused(name, options[name], f"0, or at least {FEWEST}")
    if options["agree"] > options["checkers"]:
        raise _refused("agree", options["agree"], f"at most as many as 'checkers', {options['checkers']}")
    if "single" not in options.get("parts", ("single",)):
        raise _refused("parts", options["parts"], "'single' among them")
    edition_facts(config, ())


def partitions_of(config: Config) -> tuple[Partition, ...]:
    """Returns the partitions of a culture, its own last; raises DataError for an option that names none."""
    systems = {}
    for line in config.options["system_prompts"]:
        code, _, text = (part.strip() for part in line.partition(":"))
        if not text:
            raise _refused("system_prompts", line, "a language and its prompt, such as 'ko: …'")
        systems[code] = text
    found = []
    for contrast in config.options["contrasts"]:
        if contrast in PAPER.codes:
            found.append(PAPER[contrast])
        elif match := _CONTRAST.fullmatch(contrast):
            found.append(_partition(match[1], match[2], match[2].lower(), "contrasts"))
        else:
            expected = f"{', '.join(PAPER.codes)}, or a language and a country such as 'ja-JP'"
            raise _refused("contrasts", contrast, expected)
    others = {one.code: one for one in found if one.code != config.language}
    if not others:
        raise _refused("contrasts", list(config.options["contrasts"]), "a partition in another language")
    own = _partition(config.language, config.place, config.name, "language")
    return tuple(replace(one, system=systems.get(one.code, "")) for one in (*others.values(), own))


def written_partitions(config: Config) -> tuple[Partition, ...]:
    """Returns the partitions whose questions and answers people write, the culture's own first."""
    partitions = partitions_of(config)[::-1]
    return partitions if config.way == SCENARIOS else partitions[:1]


def _partition(code: str, country: str, name: str, option: str) -> Partition:
    from culture_tasks.vocabulary import language, place

    try:
        known = language(code)
        place(country)
    except (KeyError, LookupError):
        raise _refused(option, f"{code}-{country}", "codes of a language (ISO 639) and a country (ISO 3166)") from None
    answer = f"answer_{name}_{code}"
    gloss = "" if code == "en" else f"{answer}_en"
    return Partition(
        code=code, language=known.name, place=country, question=f"question_{code}", answer=answer, gloss=gloss
    )


def _refused(option: str, found: object, expected: str) -> DataError:
    return DataError(f"culture.toml, option {option!r}: found {found!r:.80}. Expected {expected}. Correct it there.")


def edition_facts(config: Config, parts: Iterable[str]) -> dict[str, Any]:
    """Returns what the benchmark has to know of a culture whose cases belong to some parts."""
    partitions = partitions_of(config)
    codes = [partition.code for partition in partitions]
    targets = list(config.options["targets"]) or [config.language]
    if unknown := [code for code in targets if code not in codes]:
        raise _refused("targets", unknown[0], f"some of {', '.join(codes)}")
    chains = [chain.split("-") for chain in config.options["chains"]] or [codes]
    for chain in chains:
        if len(chain) < 2 or len(set(chain)) < len(chain) or not set(chain) <= set(codes):
            raise _refused("chains", "-".join(chain), f"two or more of {', '.join(codes)}, each once, with '-' between")
    return {
        "partitions": [asdict(partition) for partition in partitions],
        "targets": targets,
        "orders": chains if "sequential" in parts else [],
        "seed": config.seed,
        "has_training": "train" in parts,
    }
