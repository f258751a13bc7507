"""``culture-tasks preferences``: from rated responses to data that a model is trained on."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from culture_tasks.preferences.recipes.recipe_files import PAPER_MODELS
from culture_tasks.settings import Settings


def register(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Adds the subcommand."""
    parser = subparsers.add_parser("preferences", help="pairs of rated responses to train on with TRL")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    made = actions.add_parser("build", help="write a folder to train on: data, recipes and a manifest")
    made.add_argument("sources", nargs="+", metavar="SOURCE", help="rated rows: a file, or geyang627/CARE on the Hub")
    made.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder to write")
    made.add_argument(
        "--dev", type=float, default=0.1, metavar="P", help="share for development (default: %(default)s)"
    )
    made.add_argument("--seed", type=int, default=0, help="seed of every draw (default: %(default)s)")
    made.add_argument("--plain", action="store_true", help="write texts rather than messages")
    made.add_argument(
        "--model",
        default=PAPER_MODELS[0],
        help="model that the recipes train, on the Hub or in a folder (default: %(default)s)",
    )
    made.set_defaults(handler=_build)
    _add_merge(actions)


def _add_merge(actions: argparse._SubParsersAction[Any]) -> None:
    merged = actions.add_parser(
        "merge",
        help="merge a LoRA adapter into the model that it was trained on",
        description="Writes a model with a LoRA adapter's weights added, for programs that take no adapter, such as "
        "lmms-eval's chat models. lm-eval needs none of this: it takes the adapter by peft=ADAPTER (hf) or "
        "lora_local_path=ADAPTER (vllm).",
    )
    merged.add_argument("adapter", type=Path, metavar="ADAPTER", help="folder of the adapter")
    merged.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder to write")
    merged.add_argument("--base", metavar="MODEL", help="the model below it (default: the one that it was trained on)")
    merged.add_argument(
        "--dtype",
        choices=("auto", "bfloat16", "float16", "float32"),
        default="auto",
        help="data type of the weights (default: the checkpoint's)",
    )
    merged.add_argument("--trust-remote-code", action="store_true", help="run code of the checkpoint")
    merged.set_defaults(handler=_merge)


def _build(options: argparse.Namespace) -> int:
    from culture_tasks.data.tables import extra_columns
    from culture_tasks.preferences.build import build
    from culture_tasks.preferences.manifest import Rule
    from culture_tasks.preferences.rated_answers import read_rated

    settings = Settings.from_environment()
    with extra_columns(settings.extra_columns):
        rated = read_rated(options.sources, settings.data_folder)
    manifest = build(
        rated, Rule(dev=options.dev, plain=options.plain), options.seed, options.output, model=options.model
    )
    print(f"{manifest.counts['train_pairs']} pairs to train on, {manifest.counts['dev_pairs']} for development")
    return 0


def _merge(options: argparse.Namespace) -> int:
    from culture_tasks.preferences.merging import merge

    below = merge(
        options.adapter,
        options.output,
        base=options.base,
        dtype=options.dtype,
        trust_remote_code=options.trust_remote_code,
    )
    print(f"{options.adapter} merged into {below}: {options.output}")
    return 0
