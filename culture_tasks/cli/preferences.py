"""``culture-tasks preferences``: from rated responses to data that a model is trained on."""

from __future__ import annotations

import argparse
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from culture_tasks.benchmarks.registry import check_revisions
from culture_tasks.cli.options import (
    AddParser,
    add_json,
    add_repeatable,
    add_tasks,
    not_negative,
    number,
    print_json,
    rated_data_help,
    writing,
)
from culture_tasks.errors import DataUnavailableError
from culture_tasks.people.rated_responses import category_of
from culture_tasks.preferences.dataset_folder import build, check_new
from culture_tasks.preferences.held_out import Overlap, hold_out_tests, overlap
from culture_tasks.preferences.pairs import choose, select_questions
from culture_tasks.preferences.preference_stat import preference_stat
from culture_tasks.preferences.rated_questions import LEFT_OUT, RatedQuestions
from culture_tasks.preferences.rating_sources import ResultSelection, gather
from culture_tasks.preferences.recipes.recipe_files import PAPER_MODELS
from culture_tasks.results.training_manifest import NearDuplicate, Rule
from culture_tasks.settings import Settings
from culture_tasks.text_tables import as_text

_SOURCES = """\
sources:
{offered}
  FILE             rated rows in their layout, as JSON, JSONL, CSV or Parquet: question, response, human_rating (or the
                   column named by --rating), and optionally reference (also answer), category (also cul_type),
                   associated_culture, language, rubric, source, model
  FOLDER           results of several models on a task that a judge has graded, written with --log_samples
"""

_BUILD = """\
Writes a folder to train on with TRL: the best-rated response of each question against the worst-rated one, one pair per
question (CARE, section 4), as sft/, dpo/ and kto/, and manifest.json. Questions of CARE's tests are left out. The same
input and seed give the same folder.
"""

_STAT = """\
Shows, by language, category and culture: questions, rated responses, pairs, ties, gaps, and the length of chosen
against rejected responses. Then who wrote the responses, and what the questions share with tests. Nothing is held out.
"""


def register(add_parser: AddParser) -> None:
    """Adds the command."""
    actions = add_parser().add_subparsers(title="actions", metavar="ACTION", required=True)
    raw, sources = argparse.RawDescriptionHelpFormatter, _SOURCES.format(offered=rated_data_help())
    text = "write a folder to train on: data, recipes and a manifest"
    build = actions.add_parser("build", help=text, description=_BUILD, epilog=sources, formatter_class=raw)
    _add_sources(build)
    build.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder to write")
    _add_rule(build)
    culture = "draw questions about native cultures, foreign ones or half of each, equally many (section 4.5)"
    build.add_argument("--culture", choices=("native", "foreign", "mixed"), help=culture)
    above_0 = number("a number above 0 and at most 1", lambda share: 0.0 < share <= 1.0)
    fraction = "train on this share of the questions; a larger share contains every smaller one (Figure 3)"
    build.add_argument("--fraction", type=above_0, default=1.0, metavar="P", help=fraction)
    below_1 = number("a number of at least 0 and below 1", lambda share: 0.0 <= share < 1.0)
    dev = "share of the questions set aside for development, 0 for none (default: %(default)s)"
    build.add_argument("--dev", type=below_1, default=0.1, metavar="P", help=dev)
    on_tests = "keep questions of tests; the manifest lists them, and the report marks the model"
    build.add_argument("--train-on-test", dest="test_questions", action="store_true", help=on_tests)
    build.add_argument("--plain", action="store_true", help="write plain text rather than messages")
    model = "model that the recipes train, on the Hub or in a folder (default: %(default)s)"
    build.add_argument("--model", default=PAPER_MODELS[0], help=model)
    add_json(build)
    build.set_defaults(handler=_build)

    text = "show what rated responses hold: pairs, ties, gaps, lengths, who wrote them, overlap with tests"
    stat = actions.add_parser("stat", help=text, description=_STAT, epilog=sources, formatter_class=raw)
    _add_sources(stat)
    folder = "also write JSON, Markdown and CSV to this folder"
    stat.add_argument("-o", "--output", type=Path, metavar="DIR", help=folder)
    _add_rule(stat)
    add_json(stat)
    stat.set_defaults(handler=_stat, test_questions=True)


def _add_sources(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="rated rows or results (see below)")
    parser.add_argument("--rating", metavar="COLUMN", help="column of the ratings in rows (default: human_rating)")
    add_tasks(parser, "tasks or groups to take from results")
    judge = "judge whose verdicts count, where there are several, such as openai:gpt-4o"
    parser.add_argument("--judge", metavar="SPEC", help=judge)
    parser.add_argument("--text-overlap", action="store_true", help="use text overlap as the rating: for trial runs")
    add_tasks(
        parser,
        "also leave out the questions of these tasks or groups; 'none' keeps all",
        "--hold-out",
    )


def _add_rule(parser: argparse.ArgumentParser) -> None:
    pairs = "one pair per question, or every pair of responses with different ratings (default: %(default)s)"
    parser.add_argument("--pairs", choices=("paper", "all"), default="paper", help=pairs)
    gap = "smallest difference between the ratings of a pair"
    parser.add_argument("--min-gap", type=not_negative, default=0.0, metavar="N", help=gap)
    add_repeatable(parser, "--language", "CODE", "keep questions in this language; may be repeated", dest="languages")
    add_repeatable(parser, "--category", "NAME", "keep questions of this category; may be repeated", dest="categories")
    parser.add_argument("--seed", type=int, default=0, help="seed of every draw (default: %(default)s)")


def _build(options: argparse.Namespace) -> int:
    settings = Settings.from_environment()
    check_new(options.output)
    rule = _rule(options)
    check_revisions(settings)
    ratings = _rated_questions(options, settings)
    held_out, tests, reading = hold_out_tests(options.hold_out, rule, settings)
    rule = rule.model_copy(update={"hold_out": held_out})
    choice = choose(ratings, rule, options.seed, tests)
    manifest = build(choice, rule, options.seed, options.output, ratings.reading | reading, options.model)
    if options.json:
        print_json(manifest)
        return 0
    words = _COUNTS | {name: f"{responses}, left out" for name, responses in LEFT_OUT.items()}
    rows = [(words.get(name, name.replace("_", " ")), f"{count:,}") for name, count in manifest.counts.items() if count]
    print(as_text(("", f"rated by {manifest.rated_by.name}"), rows))
    _print_near_duplicates(manifest.near_duplicates, ratings, choice.overlap)
    print(f"written to {options.output}")
    return 0


def _stat(options: argparse.Namespace) -> int:
    settings = Settings.from_environment()
    rule = _rule(options)
    check_revisions(settings)
    ratings = _rated_questions(options, settings)
    questions = select_questions(ratings.questions, rule, Counter())
    try:
        _, tests, _ = hold_out_tests(options.hold_out, rule, settings)
        test_overlap: Overlap | str = overlap(questions, tests)
    except DataUnavailableError as error:
        test_overlap = str(error)
    stat = preference_stat(ratings, questions, rule, options.seed, test_overlap)
    paths: list[Path] = []
    if options.output is not None:
        with writing("preferences", options.output):
            paths = stat.write(options.output)
    if options.json:
        print_json(stat.content)
        return 0
    print(stat.as_text())
    if not isinstance(test_overlap, str):
        _print_near_duplicates(test_overlap.near, ratings, test_overlap)
    if paths:
        print(textwrap.fill(f"written to {options.output}: {', '.join(path.name for path in paths)}", 118))
    return 0


def _rule(options: argparse.Namespace) -> Rule:
    values = {name: value for name, value in vars(options).items() if name in Rule.model_fields and name != "hold_out"}
    categories = [category_of("preferences: --category", name) for name in options.categories]
    return Rule(**values | {"categories": categories})


def _rated_questions(options: argparse.Namespace, settings: Settings) -> RatedQuestions:
    selection = ResultSelection(options.tasks, options.judge, options.text_overlap, options.test_questions)
    return gather(options.sources, selection, options.rating, settings)


_COUNTS = {
    "responses": "rated responses",
    "questions_of_unknown_language": "questions in an unknown language",
    "questions_of_another_language": "questions in other languages, left out",
    "questions_of_another_category": "questions of other categories, left out",
    "questions_held_out": "questions of tests, left out",
    "questions_with_one_response": "questions with one response, left out",
    "ties": "questions whose responses are all rated alike, left out",
    "questions_below_min_gap": "questions whose ratings are too close, left out",
    "questions_not_drawn_for_culture": "questions not drawn for the culture, left out",
    "questions_beyond_fraction": "questions outside the fraction, left out",
    "kto_responses_with_both_labels": "responses better in one pair and worse in another, left out of KTO's data",
}
"""Words for counts whose names don't say enough."""


def _print_near_duplicates(near: Sequence[NearDuplicate], ratings: RatedQuestions, test_overlap: Overlap) -> None:
    if not near:
        return
    questions = {question.fingerprint: question.text for question in ratings.questions}
    pairs = [
        (questions[pair.question], test_overlap.tests[pair.task, pair.item], pair.task, f"{pair.similarity:.2f}")
        for pair in near[:10]
    ]
    count = len({pair.question for pair in near})
    closely = "1 question closely resembles" if count == 1 else f"{count} questions closely resemble"
    print(f"\n{closely} a test question, and {'is' if count == 1 else 'are'} not left out:")
    print(as_text(("question", "test question", "task", "similarity"), pairs))
