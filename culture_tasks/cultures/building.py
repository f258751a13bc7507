"""Builds a culture of a project: a folder of data, task files and a card, by which any installation can run it."""

from __future__ import annotations

import io
import json
import shutil
import uuid
import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

from culture_tasks import __version__
from culture_tasks.benchmarks.culture_forms import BuiltTables
from culture_tasks.benchmarks.cultures import BUILT, DATA, MANIFEST, BuiltCulture, Identity, OffersCultures, hashes_of
from culture_tasks.benchmarks.interface import Benchmark, Task
from culture_tasks.benchmarks.registry import benchmarks, reading_data
from culture_tasks.cultures.project import Project
from culture_tasks.errors import DataError
from culture_tasks.harness.task_files import task_files
from culture_tasks.pages.markup import as_markup, templates_of
from culture_tasks.settings import Settings
from culture_tasks.text_tables import markdown_cell, write_csv
from culture_tasks.vocabulary import language, place

CARD = "README.md"
DROPPED = "dropped.csv"

_ORIENTATION = 0x0112  # tag of EXIF


class BuiltFolder(NamedTuple):
    """A culture, as a reader of its folder has it, the names of its tasks and groups, and the data in it."""

    culture: BuiltCulture
    tasks: Sequence[str]
    built: BuiltTables


def build(project: Project, settings: Settings) -> BuiltFolder:
    """Builds a project's culture into its folder ``built``, in place of an earlier one, and loads it once.

    The same entries give the same files, whoever builds them.

    Raises:
        DataError: If the entries make no culture, or what the group brought in can't be used.
    """
    state = project.state(settings.data_folder)
    if problems := list(project.form.check(state)):
        more = f" There are {len(problems) - 1} more: `culture-tasks culture agree` lists them." if problems[1:] else ""
        raise DataError(f"{problems[0]}{more}")
    built = project.form.build(state)
    final, unfinished = project.folder / BUILT, project.folder / f".{BUILT}-{uuid.uuid4().hex}"
    try:
        for name, rows in built.tables.items():
            if not rows:
                raise DataError(f"culture: no row is left for {name}. Expected at least one: `culture agree` says why.")
            _write(unfinished / DATA / name, _json(list(rows)))
        for name, source in built.images.items():
            _write(unfinished / DATA / "images" / name, without_metadata(project.folder / "images" / source))
        identity = {field.name: getattr(project.config, field.name) for field in fields(Identity)}
        facts = json.loads(_json(built.facts))
        culture = BuiltCulture(folder=unfinished, files={}, marks=tuple(built.marks), facts=facts, **identity)
        offering = benchmarks()[culture.like]
        assert isinstance(offering, OffersCultures)
        benchmark = offering.culture(culture)
        with reading_data(settings):
            for entry in benchmark.entries():
                if isinstance(entry, Task):
                    entry.data.load(settings)
        for path, text in task_files(benchmark).items():
            _write(unfinished / "tasks" / path, text.encode())
        _write(unfinished / CARD, _card(project, built, benchmark).encode())
        manifest = {**culture.manifest, "files": hashes_of(unfinished), "culture_tasks": __version__}
        _write(unfinished / MANIFEST, _json(manifest))
        shutil.rmtree(final, ignore_errors=True)
        unfinished.replace(final)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    write_csv(project.folder / DROPPED, ["step", "row", "reason"], [list(row) for row in built.dropped])
    return BuiltFolder(BuiltCulture.read(final), [entry.name for entry in benchmark.entries()], built)


def pack(culture: BuiltCulture, path: Path) -> None:
    """Writes a built culture as a zip file; the same culture gives the same bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in (MANIFEST, *sorted(culture.files)):
            member = zipfile.ZipInfo(f"{culture.benchmark}/{name}")
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, (culture.folder / name).read_bytes())


def _json(content: object) -> bytes:
    return (json.dumps(content, ensure_ascii=False, indent=1, default=list) + "\n").encode()


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def without_metadata(path: Path) -> bytes:
    """Returns an image file without what cameras and programs wrote into it, such as the place; upright.

    A file that has nothing of the kind is returned as it is.

    Raises:
        DataError: If it isn't an image.
    """
    from PIL import Image, ImageOps

    try:
        content = path.read_bytes()
        with Image.open(io.BytesIO(content)) as image:
            several = image.format == "MPO"  # a JPEG with further images behind the first, as phones write it
            kind, exif = "JPEG" if several else image.format, image.getexif()
            tells = {"exif", "xmp", "XML:com.adobe.xmp", "comment", "photoshop"} & image.info.keys()
            if not (several or tells or exif or getattr(image, "text", None)):
                return content
            upright = ImageOps.exif_transpose(image) if exif.get(_ORIENTATION, 1) != 1 else image.copy()
            quality = {"JPEG": {"quality": 95, "subsampling": 0}, "WEBP": {"quality": 95}}.get(str(kind), {})
            upright.info = {name: image.info[name] for name in image.info if name == "transparency"}
            output = io.BytesIO()
            upright.save(output, kind, icc_profile=image.info.get("icc_profile"), **quality)
            return output.getvalue()
    except (OSError, ValueError, SyntaxError) as error:
        raise DataError(f"{path}: not an image that can be read ({error}). Replace it, or remove its row.") from None


def _card(project: Project, built: BuiltTables, benchmark: Benchmark) -> str:
    import yaml

    config = project.config
    tasks = [entry.name for entry in benchmark.entries()]
    tables = [{"config_name": Path(name).stem, "data_files": f"{DATA}/{name}"} for name in built.tables]
    front = {
        "pretty_name": benchmark.title,
        "language": [config.language],
        "license": config.card.get("licence", "").strip() or "unknown",
        "tags": ["culture-tasks", config.like],
        "configs": tables,
    }
    decisions = project.form.options(config.way)
    card = templates_of(__package__).get_template("card.md")
    return card.render(
        front=as_markup(yaml.safe_dump(front, allow_unicode=True, sort_keys=False)),
        config=config,
        benchmark=benchmark,
        place=place(config.place).name,
        language=language(config.language).name,
        built=built,
        options={option.name: (option.about, config.options[option.name]) for option in decisions},
        tasks=tasks,
        task=benchmark.name if benchmark.name in tasks else tasks[0],  # the former runs in each harness
        reasons=Counter((row.step, row.reason) for row in built.dropped),
        canary=uuid.uuid5(uuid.NAMESPACE_URL, f"culture-tasks:{benchmark.name}"),
        version=__version__,
        cell=markdown_cell,
    )
