"""From rated responses to a folder that TRL trains on: selecting, pairing, holding out, writing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

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


class ChosenPairs(NamedTuple):
    """The pairs of a build by split, what they were made of and how many there are of everything.

    ``overlap`` is what all questions share with tests, before any were held out.
    """

    rated: RatedQuestions
    pairs: Mapping[str, Sequence[PreferencePair]]
    counts: Mapping[str, int]
    overlap: Overlap


def gather(sources: Sequence[str], taken: Taken, rating: str | None, settings: Settings) -> RatedQuestions:
    """Reads sources: tables of rated rows, and result files and folders, which are read together.

    ``rating`` is the column of the ratings in rows; None means people's.

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
    known = [name for key, each in offered().items() for name in (key, each.source.hub) if name]
    path = Path(source).expanduser()
    if source in known:
        return False
    if path.exists() or path.suffix.lower() in SUFFIXES:
        return path.is_dir() or parse_name(path) is not None
    raise DataError(
        f"preferences: {source}: no such file or folder.{nearest(source, known)} Expected a file of rated rows "
        f"({', '.join(SUFFIXES)}), a folder of results, or {' or '.join(known)}."
    )


def choose(rated: RatedQuestions, rule: Rule, seed: int, tests: Sequence[HeldOut]) -> ChosenPairs:
    """Makes the pairs of a build, and looks for the questions of tests.

    Raises:
        DataError: If a choice matches nothing, or no pair is left.
    """
    counts: Counter[str] = Counter({"questions": len(rated.questions)})
    counts["responses"] = sum(len(question.answers) for question in rated.questions)
    counts["questions_of_unknown_language"] = sum(question.language == UNKNOWN for question in rated.questions)
    counts.update(rated.left_out)
    questions = selected(rated.questions, rule, counts)
    shared = overlap(questions, tests)
    held_out = {name for name, items in shared.same.items() if any(task in rule.hold_out for task, _ in items)}
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
    return ChosenPairs(rated, pairs, dict(counts), shared)


def selected(questions: Iterable[RatedQuestion], rule: Rule, counts: Counter[str]) -> list[RatedQuestion]:
    """Returns the questions of the languages and categories of a rule, and counts the others.

    Raises:
        DataError: If no question is of one of them.
    """
    left = list(questions)
    for name, wanted in (("language", rule.languages), ("category", rule.categories)):
        known = Counter(getattr(question, name) for question in left)
        for value in wanted:
            if value not in known:
                there = ", ".join(f"{each or 'none'} ({count})" for each, count in known.most_common())
                raise DataError(
                    f"preferences: --{name} {value}: no question has it.{nearest(value, known)} There are: {there}."
                )
        if wanted:
            before = len(left)
            left = [question for question in left if getattr(question, name) in wanted]
            counts[f"questions_of_another_{name}"] = before - len(left)
    return left


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
    commits: Mapping[str, str],
    own_data: bool = False,
    model: str = PAPER_MODELS[0],
) -> Manifest:
    """Writes a folder of training data, which must not exist or be empty, with recipes that train the model on them.

    The commits are those that were read from the Hub, by data set; ``own_data`` says whether tests were read from the
    user's own data.

    Raises:
        SettingsError: If the folder can't be written.
    """
    items = {name: tuple(sorted({pair.question.fingerprint for pair in pairs})) for name, pairs in chosen.pairs.items()}
    used = frozenset(items["train"] + items["dev"])
    from_tests = (chosen.overlap.same, chosen.rated.test_items)
    of_tests = [item for known in from_tests for fingerprint in used for item in known.get(fingerprint, ())]
    manifest = Manifest(
        sources=tuple(chosen.rated.sources),
        commits=dict(sorted(commits.items())),
        rated_by=chosen.rated.rated_by,
        rule=rule,
        seed=seed,
        counts=chosen.counts,
        items=items["train"],
        dev_items=items["dev"],
        tested_items=items_by_task(of_tests),
        own_data=own_data,
        near_duplicates=tuple(near for near in chosen.overlap.near if near.question in used),
    )
    return write_folder(folder, chosen.pairs, manifest, model)
