"""``culture-tasks preferences``: from rated responses to data that a model is trained on."""

from __future__ import annotations

import argparse
import math
import textwrap
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from culture_tasks.cli.options import number, rated_data, unwritable
from culture_tasks.errors import DataUnavailableError
from culture_tasks.preferences.recipes.recipe_files import PAPER_MODELS
from culture_tasks.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culture_tasks.cli.main import Commands
    from culture_tasks.preferences.build import ChosenPairs
    from culture_tasks.preferences.graded_results import Taken
    from culture_tasks.preferences.held_out import Overlap
    from culture_tasks.preferences.rated_questions import RatedQuestions
    from culture_tasks.results.training_manifest import Manifest, NearDuplicate, Rule

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
question (CARE, section 4), as sft/, dpo/ and kto/, each with train.jsonl and dev.jsonl, and manifest.json. Questions of
CARE's tests are left out. The folder is written whole or not at all, and is the same for the same input and seed.
"""

_STAT = """\
Shows, by language, category and culture: questions, rated responses, pairs, ties, gaps, and the length of chosen
against rejected responses (a model that is trained on pairs whose better response is mostly the longer one learns to
write more). Then who wrote the responses, and what the questions share with tests. Nothing is held out.
"""


def register(commands: Commands) -> None:
    """Adds the subcommand."""
    parser = commands.add_parser("preferences")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    sources = _SOURCES.format(offered=rated_data())
    build = actions.add_parser(
        "build",
        help="write a folder to train on: data, recipes and a manifest",
        description=_BUILD,
        epilog=sources,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_sources(build)
    build.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder to write")
    _add_rule(build)
    build.add_argument(
        "--culture",
        choices=("native", "foreign", "mixed"),
        help="draw questions about native cultures, foreign ones or half of each, equally many (section 4.5)",
    )
    build.add_argument(
        "--fraction",
        type=number("a number above 0 and at most 1", lambda share: 0.0 < share <= 1.0),
        default=1.0,
        metavar="P",
        help="train on this share of the questions; a larger share contains every smaller one (Figure 3)",
    )
    build.add_argument(
        "--dev",
        type=number("a number of at least 0 and below 1", lambda share: 0.0 <= share < 1.0),
        default=0.1,
        metavar="P",
        help="share of the questions set aside for development, 0 for none (default: %(default)s)",
    )
    build.add_argument(
        "--train-on-test",
        dest="test_questions",
        action="store_true",
        help="keep questions of tests; the manifest lists them, and the report marks the model",
    )
    build.add_argument("--plain", action="store_true", help="write plain text rather than messages")
    build.add_argument(
        "--model",
        default=PAPER_MODELS[0],
        help="model that the recipes train, on the Hub or in a folder (default: %(default)s)",
    )
    build.set_defaults(handler=_build)
    stat = actions.add_parser(
        "stat",
        help="show what rated responses hold: pairs, ties, gaps, lengths, who wrote them, overlap with tests",
        description=_STAT,
        epilog=sources,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_sources(stat)
    stat.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="also write JSON, Markdown, CSV and pictures to this folder"
    )
    _add_rule(stat)
    stat.set_defaults(handler=_stat, test_questions=True)
    merge = actions.add_parser(
        "merge",
        help="merge a LoRA adapter into the model that it was trained on",
        description="Writes a model with a LoRA adapter's weights added, for programs that take no adapter, such as "
        "lmms-eval's chat models. lm-eval needs none of this: it takes the adapter by peft=ADAPTER (hf) or "
        "lora_local_path=ADAPTER (vllm).",
    )
    merge.add_argument("adapter", type=Path, metavar="ADAPTER", help="folder of the adapter")
    merge.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder to write")
    merge.add_argument(
        "--base", metavar="MODEL", help="the base model (default: the one that the adapter was trained on)"
    )
    merge.add_argument(
        "--dtype",
        choices=("auto", "bfloat16", "float16", "float32"),
        default="auto",
        help="data type of the weights (default: the checkpoint's)",
    )
    merge.add_argument("--trust-remote-code", action="store_true", help="run code of the checkpoint")
    merge.set_defaults(handler=_merge)


def _add_sources(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="rated rows or results (see below)")
    parser.add_argument("--rating", metavar="COLUMN", help="column of the ratings in rows (default: human_rating)")
    parser.add_argument(
        "--task",
        action="append",
        default=[],
        metavar="NAME",
        help="task or group to take from results; may be repeated",
    )
    parser.add_argument(
        "--judge", metavar="SPEC", help="judge whose verdicts count, where there are several, such as openai:gpt-4o"
    )
    parser.add_argument("--text-overlap", action="store_true", help="use text overlap as the rating: for trial runs")
    parser.add_argument(
        "--hold-out",
        action="append",
        default=[],
        metavar="TASK",
        help="also leave out the questions of this task or group; may be repeated; 'none' leaves out nothing",
    )


def _add_rule(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pairs",
        choices=("paper", "all"),
        default="paper",
        help="one pair per question, or every pair of responses with different ratings (default: %(default)s)",
    )
    parser.add_argument(
        "--min-gap",
        type=number("a number of at least 0", lambda gap: 0.0 <= gap < math.inf),
        default=0.0,
        metavar="N",
        help="smallest difference between the ratings of a pair",
    )
    parser.add_argument(
        "--language",
        dest="languages",
        action="append",
        default=[],
        metavar="CODE",
        help="keep questions in this language; may be repeated",
    )
    parser.add_argument(
        "--category",
        dest="categories",
        action="append",
        default=[],
        metavar="NAME",
        help="keep questions of this category; may be repeated",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of every draw (default: %(default)s)")


def _build(options: argparse.Namespace) -> int:
    from culture_tasks.benchmarks.registry import reading_data
    from culture_tasks.preferences.build import build, choose, gather
    from culture_tasks.preferences.dataset_folder import check_new
    from culture_tasks.preferences.held_out import held_out_by

    settings = Settings.from_environment()
    check_new(options.output)
    rule = _rule(options)
    with reading_data(settings) as read:
        rated = gather(options.sources, _taken(options), options.rating, settings)
        held_out, tests = held_out_by(options.hold_out, rule, settings)
    rule = rule.model_copy(update={"hold_out": held_out})
    chosen = choose(rated, rule, options.seed, tests)
    known: dict[str, Any] = {"commits": read.commits, "own_data": bool(read.own), "model": options.model}
    manifest = build(chosen, rule, options.seed, options.output, **known)
    print(_summary(manifest, chosen, options.output))
    return 0


def _stat(options: argparse.Namespace) -> int:
    from culture_tasks.benchmarks.registry import reading_data
    from culture_tasks.preferences.build import gather, selected
    from culture_tasks.preferences.held_out import held_out_by, overlap
    from culture_tasks.preferences.preference_stat import preference_stat

    settings = Settings.from_environment()
    rule = _rule(options)
    shared, not_checked = None, ""
    with reading_data(settings):
        rated = gather(options.sources, _taken(options), options.rating, settings)
        questions = selected(rated.questions, rule, Counter())
        try:
            _, tests = held_out_by(options.hold_out, rule, settings)
            shared = overlap(questions, tests)
        except DataUnavailableError as error:
            not_checked = str(error)
    stat = preference_stat(rated, questions, rule, options.seed, shared, not_checked=not_checked)
    written: list[Path] = []
    if options.output is not None:
        from culture_tasks.preferences.preference_pictures import write_pictures

        try:
            written = [*stat.write(options.output), *write_pictures(stat, options.output)]
        except OSError as error:
            raise unwritable("preferences", options.output, error) from None
    print(stat.as_text())
    if shared is not None and shared.near:
        print(_near_duplicates(shared.near, rated, shared))
    if written:
        print(textwrap.fill(f"written to {options.output}: {', '.join(path.name for path in written)}", 118))
    return 0


def _rule(options: argparse.Namespace) -> Rule:
    from culture_tasks.people.rated_responses import named_category
    from culture_tasks.results.training_manifest import Rule

    chosen = {name: value for name, value in vars(options).items() if name in Rule.model_fields and name != "hold_out"}
    categories = [named_category("preferences: --category", name) for name in options.categories]
    return Rule(**chosen | {"categories": categories})


def _taken(options: argparse.Namespace) -> Taken:
    from culture_tasks.preferences.graded_results import Taken

    return Taken(tuple(options.task), options.judge, options.text_overlap, options.test_questions)


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


def _summary(manifest: Manifest, chosen: ChosenPairs, folder: Path) -> str:
    from culture_tasks.preferences.rated_questions import LEFT_OUT
    from culture_tasks.text_tables import as_text

    words = _COUNTS | {name: f"{responses}, left out" for name, responses in LEFT_OUT.items()}
    rows = [(words.get(name, name.replace("_", " ")), f"{count:,}") for name, count in manifest.counts.items() if count]
    lines = [as_text(("", f"rated by {manifest.rated_by.name}"), rows)]
    if manifest.near_duplicates:
        lines.append(_near_duplicates(manifest.near_duplicates, chosen.rated, chosen.overlap))
    lines.append(f"written to {folder}")
    return "\n".join(lines)


def _near_duplicates(near: Sequence[NearDuplicate], rated: RatedQuestions, shared: Overlap) -> str:
    from culture_tasks.text_tables import as_text

    questions = {question.fingerprint: question.text for question in rated.questions}
    shown = [
        (questions[each.question], shared.tests[each.task, each.item], each.task, f"{each.similarity:.2f}")
        for each in near[:10]
    ]
    many = len({each.question for each in near})
    closely = "1 question closely resembles" if many == 1 else f"{many} questions closely resemble"
    table = as_text(("question", "test question", "task", "similarity"), shown)
    return f"\n{closely} a test question, and {'is' if many == 1 else 'are'} not left out:\n{table}"


def _merge(options: argparse.Namespace) -> int:
    from culture_tasks.preferences.merging import merge

    choices = {"base": options.base, "dtype": options.dtype, "trust_remote_code": options.trust_remote_code}
    below = merge(options.adapter, options.output, **choices)
    print(f"{options.adapter} merged into {below}: {options.output}")
    return 0
