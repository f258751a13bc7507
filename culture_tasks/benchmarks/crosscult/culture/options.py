"""What a group decides beforehand, and the partitions that follow from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
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


def options_of(way: str) -> Iterator[Option]:
    """Yields what a group decides beforehand."""
    scenarios = way == SCENARIOS
    yield Option(
        name="contrasts",
        default=("en",) if scenarios else PAPER.codes,
        about="The other partitions of each case; cross-language locality needs at least one. The paper has three. One "
        "in the culture's own language is left out, since nothing in a request would tell the two apart."
        + (" Write another one as language and country, such as ja-JP; its natives answer, too." if scenarios else ""),
        choices=() if scenarios else PAPER.codes,
    )
    yield Option(
        name="targets",
        default=(),
        about="Languages of the partitions that are inserted in the single-insert setting. The paper takes those on "
        "which models do worse (section 3.1). Empty means the culture's own.",
    )
    yield Option(
        name="chains",
        default=(),
        about="Orders in which the sequential setting inserts partitions, such as 'en-ko'; the paper has en-zh-ar. Of "
        "several, the first is that of the sequential tasks, and all are followed by the retention tasks. Empty means "
        "one chain, the culture's own partition last.",
    )
    yield Option(
        name="system_prompts",
        default=(),
        about="'Please answer briefly in one sentence.' (Figure 9) in each language that the paper doesn't have, such "
        "as 'ko: 한 문장으로 간단히 대답해 주세요.'",
    )
    if scenarios:
        yield Option(
            name="scenarios",
            default=12,
            about="Number of scenarios. The paper has 49. Cases of one scenario are alike, so ten scenarios in a test "
            "are the fewest for a comparison of models. Each part of the built culture needs 2.",
        )
        yield Option(
            name="train_scenarios",
            default=0,
            about="How many of them are for training insertion methods: 29 of the paper's 49.",
        )
        yield Option(
            name="sequential_scenarios",
            default=2,
            about="How many of them are for chains: 10 of the paper's 49. With 0 there are no chains.",
        )
        yield Option(
            name="must_differ",
            default=True,
            about="Whether a scenario is left out that is judged alike in all partitions. The paper doesn't say; where "
            "nothing differs, there is nothing to insert.",
        )
        yield Option(
            name="screeners",
            default=1,
            about="How many people look at each image; it is kept if all keep it. The paper doesn't say how many did.",
        )
    else:
        yield Option(
            name="parts",
            default=("single",),
            about="Parts of the published scenarios that get the new partition. 'train' is needed to fit methods, "
            "'sequential' for chains.",
            choices=PARTS,
        )
        yield Option(
            name="cases",
            default=20,
            about="How many cases of each scenario, drawn by the seed. The paper has 200; since cases of a scenario "
            "are alike, 20 of each give nearly as narrow intervals.",
        )
    yield Option(
        name="checkers",
        default=2,
        about="How many natives check each answer. The paper reports no check by natives.",
    )
    yield Option(name="agree", default=2, about="How many of them must say that it holds. The paper leaves it open.")
    yield Option(
        name="least_alpha",
        default=-1.0,
        about="Lowest alpha of the checks with which the culture is built; -1 means none. The paper has no number to "
        "compare with.",
    )
    yield Option(
        name="most_unchanged_drafts",
        default=0.5,
        about="Largest share of answers that may be a model's draft which nobody changed. All of the paper's are a "
        "model's; where natives read drafts, they change many.",
    )


_LEAST = {"scenarios": FEWEST, "cases": FEWEST, "screeners": 1, "checkers": 1, "agree": 1}
_SIZES = ("train_scenarios", "sequential_scenarios")


def check_options(config: Config) -> None:
    """Raises DataError for an option whose value makes no sense."""
    options = config.options
    for name, least in _LEAST.items():
        if options.get(name, least) < least:
            raise _refused(name, options[name], f"at least {least}")
    for name in _SIZES:
        if options.get(name, 0) not in (0, *range(FEWEST, 1000)):
            raise _refused(name, options[name], f"0, or at least {FEWEST}")
    if options["agree"] > options["checkers"]:
        raise _refused("agree", options["agree"], f"at most as many as 'checkers', {options['checkers']}")
    if "single" not in options.get("parts", ("single",)):
        raise _refused("parts", options["parts"], "'single' among them")
    edition_facts(config, ())


def partitions_of(config: Config) -> tuple[Partition, ...]:
    """Returns the partitions of a culture, its own last.

    Raises:
        DataError: If a language or place isn't one, or no other partition is left.
    """
    systems = dict(_system_prompts(config))
    paper = {partition.code: partition for partition in PAPER.partitions}
    found: dict[str, Partition] = {}
    for contrast in config.options["contrasts"]:
        if contrast in paper:
            one = paper[contrast]
        elif match := _CONTRAST.fullmatch(contrast):
            one = _partition(match[1], match[2], match[2].lower(), "contrasts")
        else:
            raise _refused("contrasts", contrast, f"{', '.join(paper)}, or a language and a country such as 'ja-JP'")
        if one.code != config.language:
            found[one.code] = replace(one, system=systems.get(one.code, ""))
    if not found:
        raise _refused("contrasts", list(config.options["contrasts"]), "a partition in another language")
    own = _partition(config.language, config.place, config.name, "language")
    return (*found.values(), replace(own, system=systems.get(own.code, "")))


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


def _system_prompts(config: Config) -> Iterator[tuple[str, str]]:
    for line in config.options["system_prompts"]:
        code, mark, text = line.partition(":")
        if not mark or not text.strip():
            raise _refused("system_prompts", line, "a language and its prompt, such as 'ko: …'")
        yield code.strip(), text.strip()


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
