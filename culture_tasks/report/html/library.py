"""All samples of a report in files beside its page, which loads them when a reader asks.

A page that was opened from a disk can't fetch data, but it can load scripts. So each file is a script of one call with
JSON in it: the rows of a run, its texts in parts, and images. The page's policy lets such a script in by a nonce.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from culture_tasks.report.html.choosing import CORRECTNESS, correctness, draw
from culture_tasks.report.html.payload import (
    IMAGES_IN_A_FILE,
    TEXTS_IN_A_FILE,
    Index,
    rows_of_runs,
    safe_json,
    shortened,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from culture_tasks.pages.thumbnails import Thumbnails
    from culture_tasks.report.model import Report
    from culture_tasks.results.runs import Sample

_T = TypeVar("_T")

_OURS = re.compile(r"(rows-\d+|texts-\d+-\d+|images-\d+)\.js")
"""Names of files that a report writes: those of an earlier report are removed."""


def write_library(report: Report, folder: Path, thumbnails: Thumbnails) -> list[Path]:
    """Writes the samples of all runs and returns the paths.

    Args:
        report: The report.
        folder: Where the files go; made if need be.
        thumbnails: Images of samples.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        if _OURS.fullmatch(old.name):
            old.unlink()
    images = Index()
    paths: list[Path] = []
    for number, (run, row) in enumerate(rows_of_runs(report).items()):
        groups, outcomes = Index(), Index()
        rows: list[list[Any]] = []
        draws = draw(report.samples.rows(run).items)
        for part, samples in enumerate(_batches(report.samples.read(run), TEXTS_IN_A_FILE)):
            texts = [_texts(sample, thumbnails, images) for sample in samples]
            paths.append(_write(folder, f"texts-{number}-{part}", texts))
            rows += [
                [
                    sample.place,
                    sample.item,
                    groups.place(tuple(sample.groups.items())),
                    outcomes.place(sample.outcome),
                    sample.score,
                    CORRECTNESS.index(correctness(sample.score, row.scale)),
                    sample.doubt,
                    int(draws[sample.place]),
                ]
                for sample in samples
            ]
        content = {"groups": groups.values, "outcomes": outcomes.values, "rows": rows}
        paths.append(_write(folder, f"rows-{number}", content))
    for part, addresses in enumerate(_batches(images.values, IMAGES_IN_A_FILE)):
        paths.append(_write(folder, f"images-{part}", addresses))
    return paths


def _batches(values: Iterable[_T], size: int) -> Iterator[list[_T]]:
    left = iter(values)
    while batch := list(islice(left, size)):
        yield batch


def _texts(sample: Sample, thumbnails: Thumbnails, images: Index) -> list[Any]:
    address = thumbnails.address(sample.image)
    return [
        shortened(sample.question),
        [shortened(text) for text in sample.references],
        shortened(sample.response),
        None if sample.rationale is None else shortened(sample.rationale),
        None if sample.prompt is None else shortened(sample.prompt),
        -1 if address is None else images.place(address),
    ]


def _write(folder: Path, name: str, content: Any) -> Path:
    path = folder / f"{name}.js"
    path.write_text(f'cultureSamples("{name}",{safe_json(content)});\n', encoding="utf-8", newline="\n")
    return path
