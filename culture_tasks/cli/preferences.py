"""``culture-tasks preferences``: from rated responses to data that a model is trained on."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from culture_tasks.benchmarks.interface import Task
from culture_tasks.benchmarks.registry import check_revisions
from culture_tasks.cli import options as common
from culture_tasks.errors import DataError, DataUnavailableError, SettingsError
from culture_tasks.people.rated_responses import category_named, offered
from culture_tasks.preferences.dataset_folder import build, check_new
from culture_tasks.preferences.held_out import NearDuplicate, Overlap, overlap, questions_of_tests, usual_tests
from culture_tasks.preferences.pairs import Rule, choose, in_words, pairs_of, select_questions
from culture_tasks.preferences.preference_stat import as_table, group_rows, overlap_rows, writer_rows
from culture_tasks.preferences.ratings import RatedQuestion, Ratings, ResultSelection, read_ratings
from culture_tasks.preferences.recipes.recipe_files import PAPER_MODELS
from culture_tasks.settings import Settings
from culture_tasks.text_tables import as_text

_BUILD = """\
Writes a folder to train on with TRL: the best-rated response of each question against the worst-rated one (CARE,
section 4), as sft/, dpo/ and kto/, and manifest.json. Questions of CARE's tests are left out. The same input and seed
give the same folder.
"""
_STAT = "Shows questions, pairs, ties, gaps and lengths by group, who wrote the responses, and what tests share."


def register(add_parser: common.AddParser) -> None:
    """Adds the command."""
    actions = add_parser().add_subparsers(title="actions", metavar="ACTION", required=True)
    build = actions.add_parser("build", help="write a folder to train on", description=_BUILD)
    stat = actions.add_parser("stat", help="show what rated responses hold", description=_STAT)
    sources = f"{', '.join(offered())}, a file of rated rows in CARE's layout, or results of several models"
    above_0 = common.number("a number above 0 and at most 1", lambda share: 0.0 < share <= 1.0)
    below_1 = common.number("a number of at least 0 and below 1", lambda share: 0.0 <= share < 1.0)
    for parser in (build, stat):
        add = parser.add_argument
        add("sources", nargs="+", metavar="SOURCE", help=sources)
        add("--rating", metavar="COLUMN", help="column of the ratings in rows (default: human_rating)")
        common.add_tasks(parser, "tasks or groups to take from results")
        add("--judge", metavar="SPEC", help="whose verdicts count in results: openai:gpt-4o, lexical")
        common.add_tasks(parser, "also leave out the questions of these; 'none' keeps all", "--hold-out")
        for name, values, metavar in (("language", "languages", "CODE"), ("category", "categories", "NAME")):
            common.add_repeatable(parser, f"--{name}", metavar, f"only this {name}; may be repeated", dest=values)
        add("--seed", type=int, default=0, help="seed of every draw (default: 0)")
        common.add_json(parser)
    add = build.add_argument
    add("-o", "--output", type=Path, required=True, metavar="DIR", help="folder to write")
    culture = "questions about native cultures, foreign ones or half of each, equally many"
    add("--culture", choices=("native", "foreign", "mixed"), help=culture)
    add("--fraction", type=above_0, default=1.0, metavar="P", help="train on this share of the questions (default: 1)")
    add("--dev", type=below_1, default=0.1, metavar="P", help="share set aside for development (default: 0.1)")
    on_tests = "keep questions of tests; the report marks the model"
    add("--train-on-test", dest="test_questions", action="store_true", help=on_tests)
    add("--model", default=PAPER_MODELS[0], help="model that the recipes train (default: %(default)s)")
    build.set_defaults(handler=_build)
    stat.set_defaults(handler=_stat, test_questions=True)


def _read(options: argparse.Namespace, settings: Settings) -> tuple[Rule, Ratings, list[Task]]:
    """Returns the rule, the rated responses, and the tests whose questions are looked for."""
    if "none" in options.hold_out and len(options.hold_out) > 1:
        raise SettingsError("preferences: --hold-out none and another task. Leave out one of them.")
    held_out = [] if "none" in options.hold_out else common.matching_tasks(options.hold_out, "preferences: --hold-out")
    tests = [] if "none" in options.hold_out else list(dict.fromkeys([*held_out, *usual_tests()]))
    names = [task.name for task in (held_out if options.test_questions else tests)]
    fields = {name: value for name, value in vars(options).items() if name in Rule.__dataclass_fields__}
    try:
        categories = [category_named(name) for name in options.categories]
    except DataError as error:
        raise DataError(f"preferences: --category: {error}") from None
    rule = Rule(**fields | {"hold_out": names, "categories": categories})
    check_revisions(settings)
    tasks = [task.name for task in common.matching_tasks(options.tasks, "preferences")]
    selection = ResultSelection(tasks, options.judge, options.test_questions)
    return rule, read_ratings(options.sources, options.rating, selection, settings), tests


def _build(options: argparse.Namespace) -> int:
    check_new(options.output)
    settings = Settings.from_environment()
    rule, ratings, tests = _read(options, settings)
    questions, reading = questions_of_tests(tests, settings)
    shared = overlap(select_questions(ratings.questions, rule, Counter()), questions)
    pairs, counts = choose(ratings, rule, options.seed, shared)
    more = {"rule": rule, "seed": options.seed, "ratings": ratings, "overlap": shared, "model": options.model}
    manifest = build(options.output, pairs, counts, **more, reading=ratings.reading | reading)
    if options.json:
        common.print_json(manifest)
        return 0
    rows = [(in_words(name), f"{count:,}") for name, count in manifest["counts"].items() if count]
    print(as_text(("", f"rated by {manifest['rated_by']['name']}"), rows))
    used = {*manifest["items"], *manifest["dev_items"]}
    _print_near([near for near in shared.near if near.question in used], ratings.questions, shared)
    print(f"written to {options.output}")
    return 0


def _stat(options: argparse.Namespace) -> int:
    settings = Settings.from_environment()
    rule, ratings, tests = _read(options, settings)
    questions = select_questions(ratings.questions, rule, Counter())
    pairs, _ = pairs_of(questions, options.seed)
    shared, unknown = overlap([], []), ""
    try:
        shared = overlap(questions, questions_of_tests(tests, settings)[0])
    except DataUnavailableError as error:
        unknown = str(error)
    groups, writers = group_rows(questions, pairs), writer_rows(questions, pairs)
    tables = {"groups": groups, "writers": writers, "tests": overlap_rows(shared)}
    rated_by = ratings.rated_by
    if options.json:
        facts = {"sources": ratings.sources, "rated_by": rated_by, "left_out": ratings.left_out}
        common.print_json({**facts, **tables, "not_checked": unknown})
        return 0
    print("\n\n".join(as_table(rows) for rows in tables.values() if rows))
    print(f"\nrated by {rated_by['name']}" + (", {:g} to {:g}".format(*rated_by["scale"]) if rated_by["scale"] else ""))
    for source in ratings.sources:
        origin = f" of {source['model']} on {source['task']}" if source["task"] else ""
        common.show(f"{source['name']}: {source['responses']:,} responses{origin}, {source['fingerprint']}")
    left_out = ", ".join(f"{count:,} {in_words(name)}" for name, count in ratings.left_out.items() if count)
    print(f"left out: {left_out or 'nothing'}")
    print("Lengths are in characters. chosen longer: share of pairs whose chosen response is longer; 0.5 is no bias.")
    if unknown:
        common.show(f"Overlap with tests isn't known: {unknown}")
    _print_near(shared.near, questions, shared)
    return 0


def _print_near(near: Sequence[NearDuplicate], questions: Sequence[RatedQuestion], shared: Overlap) -> None:
    texts = {question.fingerprint: question.text for question in questions}
    rows = [
        (texts[pair.question], shared.tests[pair.task, pair.item], pair.task, f"{pair.similarity:.2f}")
        for pair in near[:10]
    ]
    if rows:
        count = len({pair.question for pair in near})
        print(f"\nquestions that closely resemble one of a test, and aren't left out: {count:,}. The closest:")
        print(as_text(("question", "test question", "task", "similarity"), rows))
