"""From rated responses to a folder that TRL trains on: selecting, pairing, holding out, writing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from culture_tasks.data.tables import SUFFIXES
from culture_tasks.errors import DataError, nearest
from culture_tasks.people.rated_responses import UNKNOWN, offered
from culture_tasks.preferences.dataset_folder import SPLITS, write_folder
from culture_tasks.preferences.graded_results import Taken, gather_results
from culture_tasks.preferences.held_out import HeldOut, Overlap, items_by_task, overlap
from culture_tasks.preferences.pair_rule import PreferencePair, of_culture, pairs_of, split
from culture_tasks.preferences.rated_questions import Gathering, RatedQuestion, RatedQuestions
from culture_tasks.preferences.rated_rows import gather_rows
from culture_tasks.preferences.recipes.recipe_files import PAPER_MODELS
from culture_tasks.results.finding import parse_name
from culture_tasks.results.training_manifest import Manifest, Rule
from culture_tasks.settings import Settings


@dataclass(frozen=True, slots=True)
class ChosenPairs:
    """The pairs of a build.

    Attributes:
        rated: What they were made of.
        pairs: The pairs, by split.
        counts: How many there are of everything, and what was left out.
        overlap: What all questions, before any were held out, share with tests.
    """

    rated: RatedQuestions
    pairs: dict[str, list[PreferencePair]]
    counts: dict[str, int]
    overlap: Overlap


def gather(sources: Sequence[str], taken: Taken, rating: str | None, settings: Settings) -> RatedQuestions:
    """Reads sources: result files and folders together, and tables of rated rows.

    Args:
        sources: As the user names them.
        taken: What is taken of results.
        rating: Column of the ratings in rows; None for people's.
        settings: The user's settings.

    Raises:
        DataError: If a source can't be used, or they don't go together.
    """
    gathering = Gathering()
    distinct = list(dict.fromkeys(sources))
    results = [source for source in distinct if _holds_results(source)]
    for source in distinct:
        if source not in results:
            gather_rows(source, rating, settings.data_folder, gathering)
    if results:
        gather_results([Path(source).expanduser() for source in results], taken, gathering)
    return gathering.finished()


def _holds_results(source: str) -> bool:
    path = Path(source).expanduser()
    if any(source in (name, each.source.hub) for name, each in offered().items()):
        return False
    if path.exists() or path.suffix.lower() in SUFFIXES:
        return path.is_dir() or parse_name(path) is not None
    known = [name for key, each in offered().items() for name in (key, each.source.hub) if name]
    raise DataError(
        f"preferences: {source}: no such file or folder.{nearest(source, known)} Expected a file of rated rows "
        f"({', '.join(SUFFIXES)}), a folder of results, or {' or '.join(known)}."
    )


def choose(rated: RatedQuestions, rule: Rule, seed: int, tests: Sequence[HeldOut]) -> ChosenPairs:
    """Makes the pairs of a build.

    Args:
        rated: The rated responses.
        rule: How pairs are made.
        seed: Seed of every draw.
        tests: Questions of tests to look for.

    Raises:
        DataError: If a choice matches nothing, or no pair is left.
    """
    counts: Counter[str] = Counter({"questions": len(rated.questions)})
    counts["responses"] = sum(len(question.answers) for question in rated.questions)
    counts["questions_of_unknown_language"] = sum(question.language == UNKNOWN for question in rated.questions)
    counts.update(rated.left_out)
    questions = selected(rated.questions, rule, counts)
    found = overlap(questions, tests)
    held_out = {
        fingerprint for fingerprint, items in found.same.items() if any(task in rule.hold_out for task, _ in items)
    }
    counts["questions_held_out"] = len(held_out)
    questions = [question for question in questions if question.fingerprint not in held_out]
    all_pairs, without = pairs_of(questions, rule, seed)
    counts.update(without)
    paired = list({pair.question.fingerprint: pair.question for pair in all_pairs}.values())
    of_one_culture = of_culture(paired, rule, seed)
    counts["questions_not_drawn_for_culture"] = len(paired) - len(of_one_culture)
    if not of_one_culture:
        raise DataError(_why_no_pair(counts, rule))
    parts = split(of_one_culture, rule, seed)
    counts["questions_beyond_fraction"] = len(of_one_culture) - len(parts["train"]) - len(parts["dev"])
    pairs = {name: [pair for pair in all_pairs if pair.question.fingerprint in parts[name]] for name in SPLITS}
    for name in SPLITS:
        counts[f"{name}_questions"] = len(parts[name])
        counts[f"{name}_pairs"] = len(pairs[name])
    return ChosenPairs(rated, pairs, dict(counts), found)


def selected(questions: Iterable[RatedQuestion], rule: Rule, counts: Counter[str]) -> list[RatedQuestion]:
    """Returns the questions of the languages and categories of a rule, and counts the others.

    Raises:
        DataError: If no question is of one of them.
    """
    kept = list(questions)
    for name, wanted in (("language", rule.languages), ("category", rule.categories)):
        known = Counter(getattr(question, name) for question in kept)
        for value in wanted:
            if value not in known:
                there = ", ".join(f"{each or 'none'} ({count})" for each, count in known.most_common())
                raise DataError(
                    f"preferences: --{name} {value}: no question has it.{nearest(value, known)} There are: {there}."
                )
        if wanted:
            chosen = [question for question in kept if getattr(question, name) in wanted]
            counts[f"questions_of_another_{name}"] = len(kept) - len(chosen)
            kept = chosen
    return kept


def _why_no_pair(counts: Counter[str], rule: Rule) -> str:
    reasons = {
        "questions_held_out": "of tests",
        "questions_with_one_response": "with one response (equal texts count as one)",
        "ties": "with responses that are all rated alike",
        "questions_below_min_gap": f"without two ratings that are {rule.min_gap:g} apart (--min-gap)",
        "questions_not_drawn_for_culture": (
            "that --culture leaves out, since no language has both native and foreign ones"
        ),
    }
    why = ", ".join(f"{counts[name]} {reason}" for name, reason in reasons.items() if counts[name])
    return (
        f"preferences: no pair is left of {counts['questions']} questions: {why}. Expected at least one question "
        "with two responses that are rated differently."
    )


def build(
    chosen: ChosenPairs,
    rule: Rule,
    seed: int,
    folder: Path,
    *,
    commits: Mapping[str, str] | None = None,
    own_data: bool = False,
    model: str = PAPER_MODELS[0],
) -> Manifest:
    """Writes a folder of training data, with recipes that train on them.

    Args:
        chosen: The pairs.
        rule: How they were made.
        seed: Seed of every draw.
        folder: The folder; it must not exist, or be empty.
        commits: The commits that were read from the Hub, by data set.
        own_data: Whether tests were read from the user's own data.
        model: The model that the recipes train.

    Raises:
        SettingsError: If the folder can't be written.
    """
    items = {name: tuple(sorted({pair.question.fingerprint for pair in pairs})) for name, pairs in chosen.pairs.items()}
    used = frozenset(items["train"] + items["dev"])
    from_tests = (chosen.overlap.same, chosen.rated.test_items)
    of_tests = [item for known in from_tests for fingerprint in used for item in known.get(fingerprint, ())]
    return write_folder(
        folder,
        chosen.pairs,
        Manifest(
            sources=tuple(chosen.rated.sources),
            commits=dict(sorted((commits or {}).items())),
            rated_by=chosen.rated.rated_by,
            rule=rule,
            seed=seed,
            counts=chosen.counts,
            items=items["train"],
            dev_items=items["dev"],
            tested_items=items_by_task(of_tests),
            own_data=own_data,
            near_duplicates=tuple(near for near in chosen.overlap.near if near.question in used),
        ),
        model,
    )
