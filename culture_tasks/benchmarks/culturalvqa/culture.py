"""A further culture like CulturalVQA: how a group makes questions about its images, and the benchmark of them.

Our text of the paper lacks most of section 3, Appendices C to E and the instructions. What it doesn't say is an option,
or is in the table of deviations of ``docs/benchmarks/culturalvqa.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from culture_tasks.benchmarks.culturalvqa.benchmark import DECODING, TEST
from culture_tasks.benchmarks.culturalvqa.documents import EXAMPLES, FACETS, SOURCE
from culture_tasks.benchmarks.culture_forms import BuiltTables, Config, CultureForm, Figure, SheetRow, Step
from culture_tasks.benchmarks.culture_rows import (
    QuestionWork,
    answer_row,
    ask_by,
    clean,
    comparable,
    people_of,
    random_order,
    read_response,
    responses,
)
from culture_tasks.data.images import image_key, image_keys
from culture_tasks.data.sources import local_file
from culture_tasks.data.tables import Label, OptionalLabel, TableRow, read_file, usable_rows
from culture_tasks.errors import DataError, nearest
from culture_tasks.prompt_files import load as prompt_file

_IMAGES_CSV = "inputs/images.csv"

_RATIO = (0.5, 2.0)
_LEAST_PIXELS = 100  # Appendix B; of the smaller side, since it doesn't say of which
_JPEG = (".jpg", ".jpeg")
_SUFFIXES = {"PNG": (".png",), "JPEG": _JPEG, "MPO": _JPEG, "WEBP": (".webp",)}  # MPO: JPEG as phones write it

_LEAST_RATED = 5
"""Rated answers under which the raters' agreement isn't told: it would be any number."""


# Images


class _ImageRow(TableRow):
    """A row of ``inputs/images.csv``."""

    file: Label
    licence: Label
    source: OptionalLabel = None
    people: OptionalLabel = None
    consent: OptionalLabel = None


class _File(NamedTuple):
    """What an image file is: the key of its bytes, what it tells beside the image, and why it is filtered out."""

    key: str
    tells: str
    filtered: str


class _Image(NamedTuple):
    """An image of the project, by its name below ``images``, with the row that people know it by."""

    name: str
    file: _File
    record: _ImageRow

    @property
    def row(self) -> str:
        """Its name in steps: it stays if the file is renamed."""
        return f"i-{self.file.key}"


@lru_cache(maxsize=100_000)
def _read(path: Path, size: int, changed: int) -> _File | str:  # noqa: ARG001 - a changed file is read again
    """Returns what an image file is, or why it can't be used."""
    from PIL import ExifTags, Image

    try:
        with Image.open(path) as image:
            exif = image.getexif()
            tells = {"where": ExifTags.IFD.GPSInfo in exif, "with which camera": ExifTags.Base.Model in exif}
            kind, (width, height) = str(image.format), image.size
    except (OSError, ValueError, SyntaxError) as error:
        return f"can't be read as an image ({error}). Replace or remove it."
    if path.suffix.lower() not in _SUFFIXES.get(kind, ()):
        return f"is {kind}. Expected a PNG, JPEG or WebP file with the ending of its kind. Rename or convert it."
    filtered, (low, high) = "", _RATIO
    if min(width, height) < _LEAST_PIXELS:
        filtered = f"smaller than {_LEAST_PIXELS} pixels (Appendix B)"
    elif not low <= width / height <= high:
        filtered = f"aspect ratio outside of {low:g} to {high:g} (Appendix B)"
    return _File(image_key(path.read_bytes()), " and ".join(name for name in tells if tells[name]), filtered)


def _yes(text: str | None) -> bool:
    return (text or "").strip().casefold() in ("yes", "y", "true", "1")


# Questions


class ImageQuestion(NamedTuple):
    """A question with its answers; several spellings of one person's answer are one entry of the list.

    Attributes:
        name: Name of its row in the step ``write``.
        answers: The answers of each person, the writer's first.
    """

    name: str
    image: _Image
    text: str
    facet: str
    writer: str
    answers: Sequence[Sequence[str]]

    @property
    def row(self) -> SheetRow:
        """The row in which others answer it; a changed question is another row."""
        name = answer_row(self.name, self.text)
        return SheetRow(name=name, image=self.image.name, facts={"Question": self.text})


class CulturalVqaWork(QuestionWork):
    """The usable entries of a culture like CulturalVQA, and the rows of its steps."""

    @cached_property
    def images(self) -> tuple[list[_Image], list[str]]:
        """The images that pass the paper's filters, and what is wrong with files and their table."""
        path, names = self.state.folder / _IMAGES_CSV, self.state.images
        if not path.is_file():
            columns = "file and licence, and if you know them source, people and consent"
            return [], [f"{path}: no such file. Expected a CSV file with a row per image, in the columns {columns}."]
        try:
            rows, problems = usable_rows(read_file(path), _ImageRow, {"license": "licence"})
        except DataError as error:
            return [], [str(error)]
        records = {clean(row.file): row for row in rows.values()}  # systems spell the accents of names in two ways
        folder, spelt = self.state.folder / "images", set(map(clean, names))
        problems += [
            f"{path}, field 'file': no file {name!r} in {folder}.{nearest(name, names)} Correct the row."
            for name in records
            if name not in spelt
        ]
        if without := [name for name in names if clean(name) not in records]:
            more = f", nor for {len(without) - 1} more" if without[1:] else ""
            problems.append(f"{path}: no row for the image {without[0]!r}{more}. Add rows with source and licence.")
        images: list[_Image] = []
        first: dict[str, str] = {}
        for name in names:
            file = folder / name
            content = _read(file, file.stat().st_size, file.stat().st_mtime_ns)
            if isinstance(content, str):
                problems.append(f"{file}: {content}")
            elif clean(name) not in records:
                continue
            elif first.setdefault(content.key, name) != name:
                self.drop("image", name, "the same image as another file")
            elif content.filtered:
                self.drop("image", name, content.filtered)
            else:
                images.append(_Image(name, content, records[clean(name)]))
        return images, problems

    @cached_property
    def suitable(self) -> dict[str, _Image]:
        """The images about which questions can be written, by row."""
        images = {}
        for image in self.images[0]:
            entries = self.state.entries_of("screen", image.row)
            has_people = _yes(image.record.people) or any(entry.values.get("people") for entry in entries)
            if self.options["screen"] and not entries:
                self.drop("screen", image.name, "nobody has looked at it yet")
            elif any(not entry.values["suitable"] for entry in entries):
                self.drop("screen", image.name, "a reviewer left it out")
            elif has_people and not _yes(image.record.consent):
                reason = f"people can be recognised in it, and {_IMAGES_CSV} records no consent"
                self.drop("screen", image.name, reason)
            else:
                images[image.row] = image
        return images

    @cached_property
    def questions(self) -> list[ImageQuestion]:
        """The questions, those without enough answers too; images and rows without one are dropped."""
        images = self.suitable
        reasons = dict.fromkeys(images, "nobody has written about it yet")
        questions = []
        for name in sorted(self.state.entries.get("write", {})):
            entries, row = self.state.entries_of("write", name), name.partition(".")[0]
            if not entries and row in reasons:
                reasons[row] = "skipped by the person who was to write"
            elif entries and row not in images:
                self.drop("write", name, "its image is left out")
            elif entries:
                values, text = entries[0].values, clean(entries[0].values["question"])
                further_answers = [entry.values for entry in self.state.entries_of("answer", answer_row(name, text))]
                answers = [
                    [clean(spelling) for spelling in (answer["answer"], *(answer.get("variants") or ()))]
                    for answer in (values, *further_answers)
                    if answer.get("answer")
                ]
                questions.append(ImageQuestion(name, images[row], text, values["facet"], entries[0].person, answers))
                for _ in entries[1:]:
                    self.drop("write", name, "a second question in its place")
        asked_about = {question.image.row for question in questions}
        for row, reason in reasons.items():
            if row not in asked_about:
                self.drop("image", images[row].name, reason)
        return questions

    @cached_property
    def usable(self) -> list[ImageQuestion]:
        """The questions with enough answers, each once."""
        questions = []
        first: set[tuple[str, str]] = set()
        for question in self.questions:
            key = (question.image.row, comparable(question.text))
            if len(question.answers) < max(1, self.options["least_answers"]):
                self.drop("write", question.name, "too few people have answered it")
            elif key in first:
                self.drop("write", question.name, "an earlier row asks the same about the image")
            else:
                first.add(key)
                questions.append(question)
        return questions

    # Rows of the steps

    def screen_rows(self) -> list[SheetRow]:
        """Returns the images that pass the filters."""
        rows = []
        for image in self.images[0]:
            consent = "recorded" if _yes(image.record.consent) else "not recorded"
            facts = {"Licence": image.record.licence, "Consent": consent}
            if image.file.tells:
                facts["The file says"] = f"{image.file.tells} it was taken, which isn't part of what is built"
            rows.append(SheetRow(name=image.row, image=image.name, facts=facts))
        return rows

    def write_rows(self) -> list[SheetRow]:
        """Returns the images that are suitable, each as often as questions are written about it."""
        numbers = range(1, self.options["questions_per_image"] + 1)
        images = {f"{row}.{number}": image for row, image in self.suitable.items() for number in numbers}
        return [SheetRow(name=name, image=image.name, people=self.writers(name)) for name, image in images.items()]

    def answer_rows(self) -> list[SheetRow]:
        """Returns the questions, each for other people than its writer."""
        least, rows = self.options["answerers"], []
        for question in self.questions:
            row = question.row
            # A question that so many people couldn't answer isn't shown to yet more.
            is_too_hard = len(self.state.skips("answer", row.name)) >= least
            people = len(self.state.entries_of("answer", row.name)) if is_too_hard else least
            rows.append(replace(row, not_for=frozenset([question.writer]), people=people))
        return rows

    def respond_rows(self) -> list[SheetRow]:
        """Returns the questions that models answer."""
        questions = {question.name: question for question in self.usable}
        names = random_order(questions, self.config.seed, "rated")[: self.options["rated_questions"]]
        return [questions[name].row for name in sorted(names)]

    def rate_rows(self) -> list[SheetRow]:
        """Returns the answers of models."""
        return [
            replace(
                question,
                name=response.row,
                facts={**question.facts, "Answer of a model": response.text},
                group=question.name,
                people=self.options["raters"],
            )
            for question in self.respond_rows()
            for response in responses(self.state, question.name)
        ]

    def problems(self) -> Sequence[str]:
        """Returns what is wrong with images and their table."""
        return self.images[1]

    def agreement(self) -> Iterator[Figure]:
        """Yields how often people give the same answer, and the agreement of those who rated models' answers.

        The paper prints neither. Its 73 to 79 % are of a judge with people, which a spot check of scores tells.
        """
        from culture_tasks.metrics.intervals import Interval, share_interval
        from culture_tasks.metrics.rater_agreement import krippendorff_alpha

        questions = [question for question in self.usable if len(question.answers) > 1]
        clusters = [question.image.row for question in questions]
        answers = [[set(map(comparable, spellings)) for spellings in question.answers] for question in questions]
        matches = [[bool(first & second) for first, second in combinations(answer_sets, 2)] for answer_sets in answers]
        conditions = {"two people give the same answer": any, "all people give the same answer": all}
        for name, condition in conditions.items() if questions else ():
            yield Figure(name, "all", share_interval([float(condition(pairs)) for pairs in matches], clusters))
        rated = [entries for row in self.rate_rows() if len(entries := self.state.entries_of("rate", row.name)) > 1]
        if rated:
            people = sorted({entry.person for entries in rated for entry in entries})
            by_person = [{entry.person: float(entry.values["rating"]) for entry in entries} for entries in rated]
            table = [[ratings.get(person, float("nan")) for ratings in by_person] for person in people]
            few = f"{len(rated)} answers were rated twice, and {_LEAST_RATED} are the least"
            alpha = krippendorff_alpha(table) if len(rated) >= _LEAST_RATED else Interval(reason=few)
            yield Figure("Krippendorff's alpha, ratings of models' answers", "all", alpha._replace(n=len(rated)))

    # Tables

    def tables(self) -> BuiltTables:
        """Returns the questions about images that aren't published, and the ratings of models' answers."""
        questions = self._new()
        if not questions:
            raise DataError(
                f"culture: no question is left. {len(self.dropped)} images and questions were left out. Expected at "
                f"least one with {max(1, self.options['least_answers'])} answers."
            )
        rows, images = [], {}
        for question in questions:
            # The name of a photograph may tell the answer, or who took it.
            image = f"{question.image.file.key}{Path(question.image.name).suffix.lower()}"
            images[image] = question.image.name
            rows.append(
                {
                    "u_id": question.name,
                    "question": question.text,
                    "image": image,
                    "country": self.config.title,
                    "facet": question.facet,
                    "all_answers": list(dict.fromkeys(answer for person in question.answers for answer in person)),
                }
            )
        by_image = Counter(row["image"] for row in rows)
        ratings = [
            {
                "u_id": question.name,
                "question": question.text,
                "response": response.text,
                "ratings": ratings,
                "model": model,
            }
            for question in questions
            for response, ratings in self.rated(responses(self.state, question.row.name))
            for model in response.models
        ]
        current = [question.row.name for question in questions]
        response_rows = {response.row for row in current for response in responses(self.state, row)}
        self.drop_stale({"answer": current, "respond": current, "rate": response_rows})
        facets = Counter(question.facet for question in questions)
        return BuiltTables(
            tables={f"{TEST}.json": rows} | ({"ratings.json": ratings} if ratings else {}),
            images=images,
            dropped=self.dropped,
            counts={
                "questions": len(rows),
                **{f"of them about {facet}": facets[facet] for facet in FACETS},
                "images": len(images),
                "answers of people": sum(len(question.answers) for question in questions),
                "rated answers of models": len(ratings),
                "people who wrote or answered": len(people_of(self.state, "write", "answer")),
            },
            facts={"fewshot": all(len(rows) - times >= EXAMPLES for times in by_image.values())},
        )

    def _new(self) -> list[ImageQuestion]:
        """Returns the questions about images that aren't in the published data, as far as these are at hand."""
        questions, path = self.usable, local_file(SOURCE, self.state.data_folder)
        if path is None:
            return questions
        table = read_file(path, SOURCE.image_column)
        names = [row.get(SOURCE.image_column or "") for row in table.rows]
        published = set(image_keys(table, names, path.parent, strict=False))
        for question in questions:
            if question.image.file.key in published:
                self.drop("write", question.name, "the image is one of the published benchmark")
        return [question for question in questions if question.image.file.key not in published]


class CulturalVqaForm(CultureForm):
    """How a further culture of CulturalVQA is made: sections 3, 7 and 8, Appendices A, B and K."""

    work = CulturalVqaWork

    def steps(self, config: Config) -> Iterator[Step]:
        """Yields the steps; without a look at images or ratings of models' answers, theirs are left out."""
        step = partial(self.step, config)
        if config.options["screen"]:
            yield step("screen", CulturalVqaWork.screen_rows)
        yield step("write", CulturalVqaWork.write_rows)
        yield step("answer", CulturalVqaWork.answer_rows)
        if config.options["rated_questions"] and config.options["raters"]:
            prompt, labels = prompt_file(__package__, "vlm.v1"), {"question": "Question"}
            ask = ask_by(prompt, read_response, DECODING, labels, shows_image=True)
            yield step("respond", CulturalVqaWork.respond_rows, ask=ask)
            yield step("rate", CulturalVqaWork.rate_rows)


FORM = CulturalVqaForm()
