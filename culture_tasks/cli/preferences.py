"""``culture-tasks preferences``: from rated responses to data that a model is trained on."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from culture_tasks.benchmarks.interface import Task
from culture_tasks.benchmarks.registry import check_revisions
from culture_tasks.cli import options as common
from culture_tasks.people.rated_responses import category_named, offered
from culture_tasks.preferences.dataset_folder import build, check_new
from culture_tasks.preferences.held_out import overlap, questions_of_tests, usual_tests
from culture_tasks.preferences.pairs import Rule, choose, in_words, pairs_of, select_questions
from culture_tasks.preferences.preference_stat import as_table, group_rows, writer_rows
from culture_tasks.preferences.ratings import Ratings, read_ratings
from culture_tasks.preferences.recipes.recipe_files import PAPER_MODELS
from culture_tasks.settings import Settings
from culture_tasks.text_tables import as_text

_BUILD = """\
Writes a folder to train on with TRL: the best-rated response of each question against the worst-rated one (CARE,
section 4), as sft/, dpo/ and kto/, and manifest.json. Questions of CARE's tests are left out. The same input and seed
give the same folder.
"""
_STAT = "Shows questions, pairs, ties, gaps and lengths by group, and who wrote the responses."


def register(add_parser: common.AddParser) -> None:
    """Adds the command."""
    actions = add_parser().add_subparsers(title="actions", metavar="ACTION", required=True)
    build = actions.add_parser("build", help="write a folder to train on", description=_BUILD)
    stat = actions.add_parser("stat", help="show what rated responses hold", description=_STAT)
    sources = f"{', '.join(offered())}, or a file of rated rows in CARE's layout"
    above_0 = common.number("a number above 0 and at most 1", lambda share: 0.0 < share <= 1.0)
    below_1 = common.number("a number of at least 0 and below 1", lambda share: 0.0 <= share < 1.0)
    for parser in (build, stat):
        add = parser.add_argument
        add("sources", nargs="+", metavar="SOURCE", help=sources)
        for name, values, metavar in (("language", "languages", "CODE"), ("category", "categories", "NAME")):
            common.add_repeatable(parser, f"--{name}", metavar, f"only this {name}; may be repeated", dest=values)
        add("--seed", type=int, default=0, help="seed of every draw (default: 0)")
        common.add_json(parser)
    add = build.add_argument
    common.add_tasks(build, "also leave out the questions of these; 'none' keeps all", "--hold-out")
    add("-o", "--output", type=Path, required=True, metavar="DIR", help="folder to write")
    culture = "questions about native cultures, foreign ones or half of each, equally many"
    add("--culture", choices=("native", "foreign", "mixed"), help=culture)
    add("--fraction", type=above_0, default=1.0, metavar="P", help="train on this share of the questions (default: 1)")
    add("--dev", type=below_1, default=0.1, metavar="P", help="share set aside for development (default: 0.1)")
    on_tests = "keep questions of tests; the report marks the model"
    add("--train-on-test", dest="test_questions", action="store_true", help=on_tests)
    add("--model", default=PAPER_MODELS[0], help="model that the recipes train (default: %(default)s)")
    build.set_defaults(handler=_build)
    stat.set_defaults(handler=_stat)


def _read(options: argparse.Namespace, settings: Settings, hold_out: Sequence[Task] = ()) -> tuple[Rule, Ratings]:
    """Returns the rule, which holds out the questions of some tasks, and the rated responses."""
    fields = {name: value for name, value in vars(options).items() if name in Rule.__dataclass_fields__}
    categories = [category_named(name) for name in options.categories]
    rule = Rule(**fields | {"hold_out": [task.name for task in hold_out], "categories": categories})
    check_revisions(settings)
    return rule, read_ratings(options.sources, settings)


def _build(options: argparse.Namespace) -> int:
    check_new(options.output)
    settings = Settings.from_environment()
    all_kept = options.hold_out == ["none"]
    held_out = common.matching_tasks(() if all_kept else options.hold_out, "preferences: --hold-out")
    tests = [] if all_kept else list(dict.fromkeys([*held_out, *usual_tests()]))
    rule, ratings = _read(options, settings, held_out if options.test_questions else tests)
    questions, reading = questions_of_tests(tests, settings)
    shared = overlap(select_questions(ratings.questions, rule, Counter()), questions)
    pairs, counts = choose(ratings, rule, options.seed, shared)
    manifest = build(
        options.output,
        pairs,
        counts,
        rule=rule,
        seed=options.seed,
        ratings=ratings,
        overlap=shared,
        reading=ratings.reading | reading,
        model=options.model,
    )
    if options.json:
        common.print_json(manifest)
        return 0
    rows = [(in_words(name), f"{count:,}") for name, count in manifest["counts"].items() if count]
    print(as_text(("", f"rated by {manifest['rated_by']['name']}"), rows))
    if near := manifest["near_duplicates"]:
        texts = {question.fingerprint: question.text for question in ratings.questions}
        nearest = [(texts[one["question"]], one["task"], one["item"], f"{one['similarity']:.2f}") for one in near[:10]]
        number = len({one["question"] for one in near})
        print(f"\nquestions that closely resemble one of a test, and aren't left out: {number:,}. The closest:")
        print(as_text(("question", "task", "item", "similarity"), nearest))
    print(f"written to {options.output}")
    return 0


def _stat(options: argparse.Namespace) -> int:
    rule, ratings = _read(options, Settings.from_environment())
    questions = select_questions(ratings.questions, rule, Counter())
    pairs, _ = pairs_of(questions, options.seed)
    tables = {"groups": group_rows(questions, pairs), "writers": writer_rows(questions, pairs)}
    rated_by, left_out = ratings.rated_by, ratings.left_out
    if options.json:
        common.print_json({"sources": ratings.sources, "rated_by": rated_by, "left_out": left_out, **tables})
        return 0
    print("\n\n".join(as_table(rows) for rows in tables.values()))
    reasons = ", ".join(f"{count:,} {in_words(name)}" for name, count in left_out.items() if count) or "nothing"
    common.show(f"\nrated by {rated_by['name']}; responses left out: {reasons}")
    print("Lengths are in characters. chosen longer: share of pairs whose chosen response is longer; 0.5 is no bias.")
    return 0
