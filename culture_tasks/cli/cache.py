"""``culture-tasks cache``: show what the verdict cache holds, clear it, or merge several."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from culture_tasks.cli.options import AddParser, add_json, print_json, show
from culture_tasks.costs.prices import read_prices
from culture_tasks.errors import SettingsError
from culture_tasks.judges import cache
from culture_tasks.judges.rubric.verdicts import discounts_of
from culture_tasks.settings import Settings


def register(add_parser: AddParser) -> None:
    """Adds the command."""
    actions = add_parser().add_subparsers(title="actions", metavar="ACTION", required=True)
    stats = actions.add_parser("stats", help="count the completions by judge and rubric")
    clear = actions.add_parser("clear", help="delete completions")
    merge = actions.add_parser("merge", help="copy the completions of several caches into one")
    for action, handler in ((stats, _stats), (clear, _clear), (merge, _merge)):
        action.set_defaults(handler=handler)
    for action in (stats, clear):
        file = "the cache (default: CULTURE_JUDGE_CACHE, or the user's cache folder)"
        action.add_argument("--file", type=Path, help=file)
    add_json(stats)
    clear.add_argument("--model", help="only completions of this judge model")
    clear.add_argument("--yes", action="store_true", help="don't ask for confirmation")
    merge.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a cache to read")
    merge.add_argument("-o", "--output", required=True, type=Path, metavar="FILE", help="the cache to write")
    add_json(merge)


def _file(options: argparse.Namespace) -> Path:
    file: Path | None = options.file or Settings.from_environment().cache_file
    if file is None:
        raise SettingsError("CULTURE_JUDGE_CACHE=off: there is no cache. Unset it, or name a file with --file.")
    if options.file is not None and not file.exists():
        raise SettingsError(f"cache: --file {file}: no such file.")
    return file


def _stats(options: argparse.Namespace) -> int:
    file = _file(options)
    judges = cache.stats(file)
    size = file.stat().st_size if file.exists() else 0
    prices = read_prices(Settings.from_environment().prices_file)
    if options.json:
        rows = [{**asdict(judge), "money": prices.cost_of_requests(judge.model, judge.usage)} for judge in judges]
        print_json({"file": file, "bytes": size, "currency": prices.currency, "prices": prices.origin, "judges": rows})
        return 0
    print(f"{file}: {sum(judge.completions for judge in judges):,} completions, {size / 1e6:.1f} MB")
    for judge in judges:
        usage = judge.usage
        tokens = f"{usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens{discounts_of(usage)}"
        money = prices.text(prices.cost_of_requests(judge.model, usage))
        key = f"{judge.endpoint}  {judge.model}  {judge.rubric}"
        show(f"  {key}: {judge.completions:,} completions, {tokens}, {money}")
    if judges and prices.origin:
        print(f"Prices: {prices.origin}")
    return 0


def _clear(options: argparse.Namespace) -> int:
    file = _file(options)
    count = sum(judge.completions for judge in cache.stats(file) if options.model in (None, judge.model))
    if count and not options.yes:
        question = f"Delete {count:,} completions from {file}? [y/N] "
        if not sys.stdin.isatty() or input(question).strip().lower() not in ("y", "yes"):
            print("Nothing was deleted: confirm with y, or use --yes.")
            return 1
    print(f"{file}: {cache.clear(file, options.model):,} completions deleted")
    return 0


def _merge(options: argparse.Namespace) -> int:
    copies = cache.merge(options.files, options.output)
    if options.json:
        print_json([dict(zip(("file", "completions", "copied"), copy, strict=True)) for copy in copies])
        return 0
    for file, completions, copied in copies:
        print(f"{file}: {completions:,} completions, {copied:,} copied to {options.output}")
    return 0
