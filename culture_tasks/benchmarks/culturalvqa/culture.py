"""A further culture like CulturalVQA: how a group makes questions about its images, and the benchmark of them.

Our text of the paper lacks most of section 3, Appendices C to E and the instructions. What it doesn't say is an option,
or stands in the table of deviations of ``docs/benchmarks/culturalvqa.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from culture_tasks.benchmarks.culturalvqa.benchmark import DECODING
from culture_tasks.benchmarks.culturalvqa.built import TEST
from culture_tasks.benchmarks.culturalvqa.documents import EXAMPLES, FACETS, SOURCE
from culture_tasks.benchmarks.culture_rows import (
    answer_row,
    clean,
    comparable,
    figure_of,
    negative_options,
    options_of,
    people_of,
    random_order,
    ratings_of,
    respond_step,
    responses,
    stale,
    step_of,
    writers,
)
from culture_tasks.benchmarks.cultures import (
    Built,
    Config,
    CultureForm,
    Dropped,
    Figure,
    FormOption,
    NothingBuiltError,
    SheetColumn,
    SheetRow,
    State,
    Step,
)
from culture_tasks.data.images import image_key, image_keys
from culture_tasks.data.sources import local_file
from culture_tasks.data.tables import Label, OptionalLabel, TableRow, read_file, usable_rows
from culture_tasks.errors import DataError, nearest

_IMAGES_CSV = "inputs/images.csv"

_RATIO = (0.5, 2.0)
_LEAST_PIXELS = 100  # Appendix B; of the smaller side, since it doesn't say of which
_JPEG = (".jpg", ".jpeg")
_SUFFIXES = {"PNG": (".png",), "JPEG": _JPEG, "MPO": _JPEG, "WEBP": (".webp",)}  # MPO: JPEG as phones write it

_FACETS = """Clothing: what people wear, every day and on occasions.
Drinks: what people drink, and how it is made and served.
Food: dishes, ingredients, meals.
Rituals: what people do in a fixed way on an occasion, such as a wedding or a prayer.
Traditions: everything else that is handed down, such as crafts, music, games and festivals."""

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
    about: _ImageRow

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


def _images(state: State, dropped: list[Dropped]) -> tuple[list[_Image], list[str]]:
    """Returns the images that pass the paper's filters, and what is wrong with files and their table."""
    path = state.folder / _IMAGES_CSV
    if not path.is_file():
        columns = "file and licence, and if you know them source, people and consent"
        return [], [f"{path}: no such file. Expected a CSV file with a row per image, in the columns {columns}."]
    try:
        rows, problems = usable_rows(read_file(path), _ImageRow, {"license": "licence"})
    except DataError as error:
        return [], [str(error)]
    about = {clean(row.file): row for row in rows.values()}  # systems spell the accents of names in two ways
    names = state.images
    spelt = set(map(clean, names))
    problems += [
        f"{path}, field 'file': no file {name!r} in {state.folder / 'images'}.{nearest(name, names)} Correct the row."
        for name in about
        if name not in spelt
    ]
    if without := [name for name in names if clean(name) not in about]:
        more = f", nor for {len(without) - 1} more" if without[1:] else ""
        problems.append(f"{path}: no row for the image {without[0]!r}{more}. Add rows with source and licence.")
    images: list[_Image] = []
    first: dict[str, str] = {}
    for name in names:
        file = state.folder / "images" / name
        found = _read(file, file.stat().st_size, file.stat().st_mtime_ns)
        if isinstance(found, str):
            problems.append(f"{file}: {found}")
        elif clean(name) not in about:
            continue
        elif first.setdefault(found.key, name) != name:
            dropped.append(Dropped("image", name, "the same image as another file"))
        elif found.filtered:
            dropped.append(Dropped("image", name, found.filtered))
        else:
            images.append(_Image(name, found, about[clean(name)]))
    return images, problems


def _screen_rows(state: State) -> list[SheetRow]:
    rows = []
    for image in _images(state, [])[0]:
        shown = {"Licence": image.about.licence, "Consent": "recorded" if _yes(image.about.consent) else "not recorded"}
        if image.file.tells:
            shown["The file says"] = f"{image.file.tells} it was taken, which isn't part of what is built"
        rows.append(SheetRow(name=image.row, image=image.name, shown=shown))
    return rows


def _suitable(state: State, dropped: list[Dropped]) -> list[_Image]:
    """Returns the images about which questions can be written."""
    images = []
    for image in _images(state, dropped)[0]:
        entries = state.of("screen", image.row)
        has_people = _yes(image.about.people) or any(entry.values.get("people") for entry in entries)
        if state.config.options["screen"] and not entries:
            reason = "nobody has looked at it yet"
        elif any(not entry.values["suitable"] for entry in entries):
            reason = "a reviewer left it out"
        elif has_people and not _yes(image.about.consent):
            reason = f"people can be recognised in it, and {_IMAGES_CSV} records no consent"
        else:
            images.append(image)
            continue
        dropped.append(Dropped("screen", image.name, reason))
    return images


# Questions and answers


class _Question(NamedTuple):
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


def _write_rows(state: State) -> list[SheetRow]:
    numbers = range(1, state.config.options["questions_per_image"] + 1)
    named = {f"{image.row}.{number}": image for image in _suitable(state, []) for number in numbers}
    return [SheetRow(name=name, image=image.name, people=writers(state, name)) for name, image in named.items()]


def _written_questions(state: State, dropped: list[Dropped]) -> list[_Question]:
    """Returns the questions, those without enough answers too, and adds images and rows without one to the dropped."""
    images = {image.row: image for image in _suitable(state, dropped)}
    without = dict.fromkeys(images, "nobody has written about it yet")
    questions = []
    for name in sorted(state.entries.get("write", {})):
        entries, row = state.of("write", name), name.partition(".")[0]
        if not entries:
            without = {**without, row: "skipped by the person who was to write"} if row in without else without
        elif row not in images:
            dropped.append(Dropped("write", name, "its image is left out"))
        else:
            values, text = entries[0].values, clean(entries[0].values["question"])
            given = [values, *(entry.values for entry in state.of("answer", answer_row(name, text)))]
            answers = [
                [clean(each) for each in (one["answer"], *(one.get("variants") or ()))]
                for one in given
                if one.get("answer")
            ]
            questions.append(_Question(name, images[row], text, values["facet"], entries[0].person, answers))
            dropped += [Dropped("write", name, "a second question in its place") for _ in entries[1:]]
    for question in questions:
        without.pop(question.image.row, None)
    dropped += [Dropped("image", images[row].name, reason) for row, reason in without.items()]
    return questions


def _row_of(question: _Question) -> SheetRow:
    """Returns the row in which others answer a question; a changed question is another row."""
    name = answer_row(question.name, question.text)
    return SheetRow(name=name, image=question.image.name, shown={"Question": question.text})


def _answer_rows(state: State) -> list[SheetRow]:
    least, rows = state.config.options["answerers"], []
    for question in _written_questions(state, []):
        row = _row_of(question)
        # A question that so many people couldn't answer isn't shown to yet more.
        is_too_hard = len(state.skipped("answer", row.name)) >= least
        people = len(state.of("answer", row.name)) if is_too_hard else least
        rows.append(replace(row, not_for=frozenset([question.writer]), people=people))
    return rows


def _usable_questions(state: State, dropped: list[Dropped]) -> list[_Question]:
    """Returns the questions with enough answers, each once."""
    questions = []
    first: set[tuple[str, str]] = set()
    for question in _written_questions(state, dropped):
        key = (question.image.row, comparable(question.text))
        if len(question.answers) < max(1, state.config.options["least_answers"]):
            dropped.append(Dropped("write", question.name, "too few people have answered it"))
        elif key in first:
            dropped.append(Dropped("write", question.name, "an earlier row asks the same about the image"))
        else:
            first.add(key)
            questions.append(question)
    return questions


# Models' answers, and their ratings


def _respond_rows(state: State) -> list[SheetRow]:
    questions = {question.name: question for question in _usable_questions(state, [])}
    chosen = random_order(questions, state.config.seed, "rated")[: state.config.options["rated_questions"]]
    return [_row_of(questions[name]) for name in sorted(chosen)]


def _rate_rows(state: State) -> list[SheetRow]:
    raters, rows = state.config.options["raters"], []
    for question in _respond_rows(state):
        for response in responses(state, question.name):
            shown = {**question.shown, "Answer of a model": response.text}
            rows.append(
                SheetRow(name=response.row, image=question.image, shown=shown, group=question.name, people=raters)
            )
    return rows


# Agreement

_LEAST_RATED = 5
"""Rated answers under which the raters' agreement isn't told: it would be any number."""


def _agreement(state: State) -> Iterator[Figure]:
    from culture_tasks.metrics.intervals import share_interval
    from culture_tasks.metrics.rater_agreement import krippendorff_alpha

    questions = [question for question in _usable_questions(state, []) if len(question.answers) > 1]
    clusters = [question.image.row for question in questions]
    same = [
        [
            bool(set(map(comparable, one)) & set(map(comparable, other)))
            for one, other in combinations(question.answers, 2)
        ]
        for question in questions
    ]
    counted_in = {"two people give the same answer": any, "all people give the same answer": all}
    for name, counted in counted_in.items() if questions else ():
        yield figure_of(name, "all", share_interval([float(counted(pairs)) for pairs in same], clusters))
    rated = [state.of("rate", row.name) for row in _rate_rows(state)]
    rated = [entries for entries in rated if len(entries) > 1]
    if not rated:
        return
    people = sorted({entry.person for entries in rated for entry in entries})
    by_person = [{entry.person: float(entry.values["rating"]) for entry in entries} for entries in rated]
    table = [[ratings.get(person, float("nan")) for ratings in by_person] for person in people]
    few = f"{len(rated)} answers were rated twice, and {_LEAST_RATED} are the least"
    alpha = krippendorff_alpha(table)._replace(n=len(rated))
    missing = few if len(rated) < _LEAST_RATED else ""
    yield figure_of("Krippendorff's alpha, ratings of models' answers", "all", alpha, missing=missing)


# The form


class CulturalVqaForm(CultureForm):
    """How a further culture of CulturalVQA is made: sections 3, 7 and 8, Appendices A, B and K."""

    ways: Mapping[str, str] = {"": "questions about images of one country, with the answers of several people"}
    paper = (
        "CulturalVQA (Nayak et al., 2024) has 2,378 questions about images from 11 countries, some 216 a country, with "
        "3 answers each; people from the country wrote and answered them, in English, for USD 10 to 15 an hour. A "
        "share of right answers is known to 7 points with 216 questions, to 10 with 100, to 17 with 30: 100 questions "
        "about as many images and three answers each are a start, with 30 for each facet that is to be shown. Take "
        "photographs of your own, or images whose licence allows it: inputs/images.csv has the columns file, licence, "
        "source, people and consent, the last two with yes where people can be recognised and have agreed. Questions "
        "that a model answers without the image tell nothing of what it sees: run the tasks that end in _blind and "
        "_country, whose scores must be far lower. `culture-tasks spotcheck` tells whether a judge agrees with people."
    )

    def options(self, way: str) -> Sequence[FormOption]:  # noqa: ARG002 - there is one way
        """Returns what a group decides beforehand."""
        return options_of(__package__)

    def steps(self, config: Config) -> Sequence[Step]:
        """Returns the steps; without a look at images or ratings of models' answers, theirs are left out."""
        return list(_steps(config))

    def check(self, state: State) -> Iterable[str]:
        """Yields what is wrong with images, with their table, and with the numbers among the options."""
        yield from negative_options(state)
        yield from _images(state, [])[1]

    def agreement(self, state: State) -> Sequence[Figure]:
        """Returns how often people give the same answer, and the agreement of those who rated models' answers.

        The paper prints neither. Its 73 to 79 % are of a judge with people, which a spot check of scores tells.
        """
        return list(_agreement(state))

    def build(self, state: State) -> Built:
        """Returns the questions with their answers and images, and the ratings of models' answers.

        Raises:
            DataError: If no question is left.
        """
        return _built(state)


FORM = CulturalVqaForm()


def _steps(config: Config) -> Iterator[Step]:
    from culture_tasks.vocabulary import language

    options = config.options
    in_language = partial(step_of, __package__, language=language(config.language).name)
    yes_no = partial(SheetColumn, kind="yes_no")
    is_suitable = yes_no(name="suitable", title="Questions can be written about it")
    people = yes_no(name="people", title="People can be recognised in it", only_if=("suitable", True))
    question = SheetColumn(name="question", title="Question", most=300)
    choices = {facet: facet.title() for facet in FACETS}
    facet = SheetColumn(name="facet", title="What it is about", kind="choice", about=_FACETS, choices=choices)
    answer = SheetColumn(name="answer", title="Answer", most=100)
    variants = SheetColumn(
        name="variants", title="Other spellings of the same answer", kind="texts", required=False, most=4
    )
    best = "1 is the best, 5 the worst"
    rating = SheetColumn(name="rating", title="Rating", kind="number", about=best, lowest=1, highest=5)
    answers = (answer, variants)
    if options["screen"]:
        yield step_of(__package__, "screen", (is_suitable, people), _screen_rows)
    yield in_language("write", (question, facet, *(answers if options["author_answers"] else ())), _write_rows)
    yield in_language("answer", answers, _answer_rows)
    if options["rated_questions"] and options["raters"]:
        yield respond_step(__package__, "vlm.v1", rows=_respond_rows, decoding=DECODING, shows_images=True)
        yield step_of(__package__, "rate", (rating,), _rate_rows)


# What is built


def _built(state: State) -> Built:
    config = state.config
    dropped: list[Dropped] = []
    questions = _without_published(state, _usable_questions(state, dropped), dropped)
    if not questions:
        raise NothingBuiltError(
            f"culture: no question is left. {len(dropped)} images and questions were left out. Expected at least one "
            f"with {max(1, config.options['least_answers'])} answers.",
            dropped,
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
                "country": config.title,
                "facet": question.facet,
                "all_answers": list(dict.fromkeys(answer for person in question.answers for answer in person)),
            }
        )
    by_image = Counter(row["image"] for row in rows)
    ratings = [
        {"u_id": one.name, "question": one.text, "response": response.text, "ratings": ratings, "model": model}
        for one in questions
        for response, ratings in ratings_of(state, responses(state, _row_of(one).name), dropped)
        for model in response.models
    ]
    current = [_row_of(question).name for question in questions]
    given = {response.row for row in current for response in responses(state, row)}
    dropped += stale(state, {"answer": current, "respond": current, "rate": given})
    facets = Counter(question.facet for question in questions)
    return Built(
        tables={f"{TEST}.json": rows} | ({"ratings.json": ratings} if ratings else {}),
        images=images,
        dropped=dropped,
        counts={
            "questions": len(rows),
            **{f"of them about {facet}": facets[facet] for facet in FACETS},
            "images": len(images),
            "answers of people": sum(len(question.answers) for question in questions),
            "rated answers of models": len(ratings),
            "people who wrote or answered": len(people_of(state, "write", "answer")),
        },
        facts={"fewshot": all(len(rows) - times >= EXAMPLES for times in by_image.values())},
    )


def _without_published(state: State, questions: list[_Question], dropped: list[Dropped]) -> list[_Question]:
    """Returns the questions about images that aren't in the published data, as far as these are at hand."""
    path = local_file(SOURCE, state.data_folder)
    if path is None:
        return questions
    table = read_file(path, SOURCE.image_column)
    names = [row.get(SOURCE.image_column or "") for row in table.rows]
    published = set(image_keys(table, names, path.parent, needed=False))
    known = [question for question in questions if question.image.file.key in published]
    dropped += [Dropped("write", question.name, "the image is one of the published benchmark") for question in known]
    return [question for question in questions if question not in known]
