"""The scenes of a group's project: where they come from, how far they are, and what gold label each has."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from culture_tasks.benchmarks.cedar.documents import FOLDER, SOURCES, CedarRow, english_label, image_name
from culture_tasks.benchmarks.cedar.labels import EMOTIONS, LANGUAGES, MODALITIES, Emotion, Language, Modality
from culture_tasks.benchmarks.cultures import MODEL, Dropped, Entry, State
from culture_tasks.data.sources import read_source
from culture_tasks.data.tables import (
    SUFFIXES,
    Identifier,
    OptionalLabel,
    RowTable,
    TableRow,
    Text,
    read_file,
    unique,
    validated,
)
from culture_tasks.errors import DataError, DataUnavailableError
from culture_tasks.metrics.near_duplicates import near_duplicates
from culture_tasks.metrics.subsets import draw

WORDS, WORDS_BACK = "words", "words_back"
TRANSLATE, WRITE, CHECK, LABEL, SECOND = "translate", "write", "check", "label", "second"
DRAFT, SECOND_PERSON, NO_EMOTION_WORDS = "draft", "second_person", "no_emotion_words"
SOCIAL, SAFE, PROVISIONAL = "social", "safe", "provisional"
ALIGN, WITH_IMAGE, WITHOUT_IMAGE = "align", "with_image", "without_image"

NEW_SCENES = "scenes"
"""The way in which a group makes scenes; in the other it takes those that there are over into its language."""

PIECES: Mapping[str, str] = {
    "text_instruction": "Read the following narrative and select ONE emotion that best matches the situation.",
    "image_instruction": "Read the following image and question, and select ONE emotion that best matches the "
    "situation.",
    "narrative": "narrative",
    "question": "question",
    "options": "options",
    "closing": "Now, [your answer] is:",
}
"""What the prompts of Figures 9 and 10 consist of beside the words for emotions, in English."""

_DRAFTS = (DRAFT, SECOND_PERSON, NO_EMOTION_WORDS, ALIGN)
_MODELS = 3  # whose provisional labels decide (section 2.3)


class SceneRow(CedarRow):
    """A scene that a group takes over; another culture's label may stand beside it, or none."""

    answer: OptionalLabel = None  # type: ignore[assignment]


class Seed(TableRow):
    """A sentence from which a scene is made."""

    id: Identifier
    sentence: Text
    source: OptionalLabel = None


class Scene(NamedTuple):
    """A scene as it was brought in or written, by the name of its row in the steps.

    Attributes:
        row: Name of its row.
        id: Its id in the data.
        image: Its image below the project's ``images``; empty for a scene that is text alone.
    """

    row: str
    id: str
    narrative: str
    question: str
    image: str = ""

    @property
    def modality(self) -> Modality:
        """Whether it has an image."""
        return "multimodal" if self.image else "text"


class Told(NamedTuple):
    """A narrative and its question in the culture's language."""

    narrative: str
    question: str


class Decision(NamedTuple):
    """What the labels of a scene amount to.

    Attributes:
        gold: The gold label; None while there is none.
        minority: The second most frequent label, where it is one.
        people: How many people have to label the scene.
    """

    gold: Emotion | None
    minority: Emotion | None
    people: int


def decide(labels: Sequence[Emotion], options: Mapping[str, Any]) -> Decision:
    """Returns what labels amount to, by the group's rule."""
    first, rule = options["labels"], options["gold_rule"]
    counts = Counter(labels).most_common()
    most = first + options["further_labels"]
    if len(labels) < max(first, 1):
        return Decision(None, None, first)
    top, second = counts[0][1], counts[1][1] if len(counts) > 1 else 0
    is_majority, is_plurality = top * 2 > len(labels), top > second
    is_last = len(labels) >= most
    if not (is_majority or (is_plurality and (rule == "plurality" or (is_last and rule != "majority")))):
        return Decision(None, None, most)
    seconds = [emotion for emotion, number in counts[1:] if number == second]
    has_minority = len(seconds) == 1 and 0 < options["minority_labels"] <= second
    return Decision(counts[0][0], seconds[0] if has_minority else None, len(labels))


def row_name(kind: str, identifier: str) -> str:
    """Returns the name of a row for any id, with a hash where characters are replaced that names can't have."""
    clean = re.sub(r"[^A-Za-z0-9_.-]", "-", identifier)[:60]
    digest = hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{kind}-{clean}" if clean == identifier else f"{kind}-{clean}-{digest}"


def brought_in(state: State, stem: str) -> RowTable | None:
    """Returns a table of the project's ``inputs``; None where it isn't there."""
    paths = [path for suffix in SUFFIXES if (path := state.folder / "inputs" / f"{stem}{suffix}").is_file()]
    return read_file(paths[0]) if paths else None


def published(state: State, language: Language) -> Iterator[tuple[Modality, Sequence[SceneRow]]]:
    """Yields the scenes of a language in the user's folder, as far as they are there."""
    for modality in MODALITIES:
        try:
            yield modality, validated(read_source(SOURCES[modality, language], state.data_folder), SceneRow)
        except DataUnavailableError:
            continue


def latest(entries: Sequence[Entry]) -> Mapping[str, Any] | None:
    """Returns the values that came in last; None where there are none."""
    return entries[-1].values if entries else None


def _model(entry: Entry) -> str:
    return entry.person.removeprefix(MODEL)


def _told(values: Mapping[str, Any], before: Told | None = None) -> Told:
    """Returns the texts that a person or model filled in; what they left empty is as it was before."""
    texts = {name: str(values.get(name) or getattr(before, name, "")).strip() for name in Told._fields}
    return Told(**texts)


@dataclass(frozen=True)
class Scenes:
    """All that the entries of a project say of its scenes."""

    state: State

    @property
    def is_new(self) -> bool:
        """Whether the group makes its scenes."""
        return self.state.config.way == NEW_SCENES

    @property
    def step(self) -> str:
        """The step in which people tell the scenes in the culture's language."""
        return WRITE if self.is_new else TRANSLATE

    @cached_property
    def all(self) -> Sequence[Scene]:
        """The scenes that there are to work on: those that were brought in, or those that were written."""
        return list(self._written() if self.is_new else self._taken_over())

    # Scenes that are taken over

    @cached_property
    def published_images(self) -> Mapping[str, Path]:
        """The images of the scenes in the user's folder, by name; none where the group brings in scenes."""
        if self.is_new or self.state.data_folder is None or brought_in(self.state, "scenes") is not None:
            return {}
        folder = self.state.data_folder / FOLDER
        names = [
            image_name(folder, row) for part, rows in published(self.state, "en") if part != "text" for row in rows
        ]
        paths = {Path(name).name: (folder / name, folder / "images" / name) for name in names}
        found = {name: next(filter(Path.is_file, both), None) for name, both in paths.items()}
        return {name: path for name, path in found.items() if path and path.resolve().is_relative_to(folder.resolve())}

    def _taken_over(self) -> Iterator[Scene]:
        table = brought_in(self.state, "scenes")
        if table is not None:
            rows = validated(table, SceneRow)
            names = [row.image or self._image_of(row.id) for row in rows]
            parts = [(row, name) for row, name in zip(rows, names, strict=True)]
        else:
            folder = (self.state.data_folder or Path()) / FOLDER
            parts = [
                (row, Path(image_name(folder, row)).name if modality == "multimodal" else "")
                for modality, rows in published(self.state, "en")
                for row in rows
            ]
        scenes = [
            Scene(row_name("image" if image else "text", row.id), row.id, row.narrative, row.question, image)
            for row, image in parts
        ]
        if repeated := [name for name, times in Counter(scene.row for scene in scenes).items() if times > 1]:
            where = table.origin if table else "cedar"
            raise DataError(f"{where}, field 'id': {repeated[0]!r} occurs twice. Expected a different one in each row.")
        most = self.state.config.options["most_scenes"]
        for kind in MODALITIES:
            some = [scene for scene in scenes if scene.modality == kind]
            yield from some if not most else (some[place] for place in sorted(self.drawn(some, most)))

    def drawn(self, scenes: Sequence[Scene], number: int) -> list[int]:
        """Returns the places of scenes that the project's seed draws."""
        names = [scene.row for scene in scenes]
        return draw(number, names, names, [""] * len(names), self.state.config.seed)

    def _image_of(self, identifier: str) -> str:
        stems = {name.rpartition(".")[0]: name for name in self.state.images}
        return stems.get(identifier, "")

    @cached_property
    def drafts(self) -> Mapping[str, Told]:
        """What a person finds in a scene's row: a model's draft, else the published translation."""
        found: dict[str, Told] = {}
        languages = [known for known in LANGUAGES if known == self.state.config.language and not self.is_new]
        for language in languages:
            for modality, rows in published(self.state, language):
                kind = "image" if modality == "multimodal" else "text"
                found |= {row_name(kind, row.id): Told(row.narrative, row.question) for row in rows}
        for name in self.seeds if self.is_new else (scene.row for scene in self.all):
            if drafts := self.drafts_of(name):
                found[name] = drafts[-1][1]
        return found

    def drafts_of(self, row: str, until: str = ALIGN) -> list[tuple[str, Told]]:
        """Returns what models drafted of a scene, each with its model; of a new one also what is between its steps."""
        if not self.is_new:
            return [(_model(entry), _told(entry.values)) for entry in self.state.by_models(TRANSLATE, row)]
        drafts: list[tuple[str, Told]] = []
        for step in _DRAFTS[: _DRAFTS.index(until) + 1]:
            for entry in self.state.by_models(step, row)[-1:]:
                drafts.append((_model(entry), _told(entry.values, drafts[-1][1] if drafts else None)))
        return drafts

    # Scenes that are written

    @cached_property
    def seeds(self) -> Mapping[str, Seed]:
        """The sentences that the group brings in, by row."""
        table = brought_in(self.state, "seeds")
        if table is None:
            return {}
        rows = validated(table, Seed)
        return {
            row_name("seed", name): row
            for name, row in zip(unique(table, (row.id for row in rows), "id"), rows, strict=True)
        }

    @cached_property
    def blanks(self) -> Mapping[str, str]:
        """The person of each row in which a scene is written from nothing."""
        config = self.state.config
        writers = [person for person, steps in config.people.items() if not steps or WRITE in steps]
        numbers = range(1, config.options["blanks"] + 1)
        return {f"blank-{person}-{number}": person for person in writers for number in numbers}

    @cached_property
    def pictures(self) -> Mapping[str, str]:
        """The image of each row in which a scene is written for an image."""
        return {row_name("image", name): name for name in self.state.images}

    def _written(self) -> Iterator[Scene]:
        for row in (*self.seeds, *self.pictures, *self.blanks):
            if values := latest(self.state.of(WRITE, row)):
                yield Scene(row, row, *_told(values), self.pictures.get(row, ""))

    # How far they are

    @cached_property
    def tellers(self) -> Mapping[str, str]:
        """The person who told each scene in the culture's language."""
        entries = {scene.row: self.state.of(self.step, scene.row) for scene in self.all}
        return {row: found[-1].person for row, found in entries.items() if found}

    @cached_property
    def told(self) -> Mapping[str, Told]:
        """The scenes in the culture's language as a second person finds them to check.

        What a model has aligned with an image takes the place of what its writer wrote.
        """
        found = {scene.row: latest(self.state.of(self.step, scene.row)) for scene in self.all}
        written = {row: _told(values) for row, values in found.items() if values}
        aligned = {row: latest(self.state.by_models(ALIGN, row)) for row in written if self.is_new}
        return written | {row: _told(values) for row, values in aligned.items() if values}

    @cached_property
    def fallen(self) -> Mapping[str, Dropped]:
        """Why scenes can't be labelled (yet), by row."""
        return {row: Dropped(step, row, reason) for row, step, reason in self._reasons()}

    @cached_property
    def texts(self) -> Mapping[str, Told]:
        """The scenes that can be labelled, as the check left them."""
        return {row: self._checked(row) for row in self.told if row not in self.fallen}

    def _checked(self, row: str) -> Told:
        """Returns a scene as the check left it; a narrative that was deleted is there no more, where a question is."""
        values, told = self._checks[row][-1].values, self.told[row]
        return _told(values) if values.get("question") else _told(values, told)

    @cached_property
    def _checks(self) -> Mapping[str, Sequence[Entry]]:
        return {scene.row: self.state.of(CHECK, scene.row) for scene in self.all}

    def _reasons(self) -> Iterator[tuple[str, str, str]]:
        if self.is_new:
            for row in (*self.seeds, *self.pictures, *self.blanks):
                is_there = row not in self.blanks or self.state.skipped(WRITE, row)
                if is_there and not self.state.of(WRITE, row):
                    is_skipped = bool(self.state.skipped(WRITE, row))
                    yield row, WRITE, "skipped by its writer" if is_skipped else "nobody has written it"
        options = self.state.config.options
        for scene in self.all:
            told = self.told.get(scene.row)
            if told is None:
                is_skipped = bool(self.state.skipped(self.step, scene.row))
                yield scene.row, self.step, "skipped by its translator" if is_skipped else "nobody has translated it"
            elif scene.narrative.strip() and not told.narrative and not self.is_new:
                yield scene.row, self.step, "its narrative isn't translated"
            elif reason := self.filtered(scene):
                yield (scene.row, *reason)
            elif not (checks := self._checks[scene.row]):
                is_skipped = bool(self.state.skipped(CHECK, scene.row))
                yield scene.row, CHECK, "skipped in the check" if is_skipped else "nobody has checked it"
            elif not all(entry.values.get("possible") for entry in checks):
                yield scene.row, CHECK, "impossible in the culture"
            elif scene.narrative.strip() and not self._checked(scene.row).narrative and not self.is_new:
                yield scene.row, CHECK, "its narrative was deleted"
            elif self.is_new and not scene.image and len(self._checked(scene.row).narrative) < options["shortest"]:
                yield scene.row, CHECK, f"its narrative has fewer than {options['shortest']} characters"
            elif self.is_new and not checks[-1].values.get("clean"):
                yield scene.row, CHECK, "it names an emotion"

    def filtered(self, scene: Scene) -> tuple[str, str] | None:
        """Returns the step of models by which a new scene falls out, and why."""
        if not self.is_new:
            return None
        for step, reason in ((SOCIAL, "no social scene, by a model"), (SAFE, "unsafe, by a model")):
            values = latest(self.state.by_models(step, scene.row))
            if values is not None and not values["keep"]:
                return step, reason
        with_image, without = (
            {entry.person: entry.values["emotion"] for entry in self.state.by_models(step, scene.row)}
            for step in (WITH_IMAGE, WITHOUT_IMAGE)
        )
        if any(without.get(model) == emotion for model, emotion in with_image.items()):
            return WITHOUT_IMAGE, "its image isn't needed: a model names the same emotion without it"
        provisional = []
        for language in self.languages:
            entries = self.state.by_models(PROVISIONAL, f"{scene.row}-{language}")
            if len(entries) < _MODELS:
                continue
            emotion, number = Counter(entry.values["emotion"] for entry in entries).most_common(1)[0]
            if number == 1:
                return PROVISIONAL, f"the models name different emotions as speakers of {language}"
            provisional.append(emotion)
        if len(provisional) == len(self.languages) > 1 and len(set(provisional)) == 1:
            return PROVISIONAL, "the same provisional label in all languages"
        return None

    @property
    def selecting_models(self) -> Sequence[str]:
        """The models whose choices decided which of the new scenes stay."""
        found = [self.state.entries.get(step, {}) for step in (PROVISIONAL, WITH_IMAGE)]
        return sorted({_model(entry) for rows in found for entries in rows.values() for entry in entries})

    @property
    def languages(self) -> Sequence[str]:
        """Codes of the languages as whose speakers models give provisional labels."""
        config = self.state.config
        return list(dict.fromkeys((config.language, *config.options["contrast_languages"])))

    # Labels

    @cached_property
    def words(self) -> Mapping[str, str]:
        """The words for emotions and the pieces of the prompt in the culture's language, by row, as far as they are."""
        found = {row: latest(self.state.of(WORDS, row)) for row in (*EMOTIONS, *PIECES)}
        return {row: str(values["translation"]).strip() for row, values in found.items() if values}

    @property
    def has_words(self) -> bool:
        """Whether all words for emotions are there, without which nobody can label."""
        return all(emotion in self.words for emotion in EMOTIONS)

    def labels(self, step: str, row: str) -> list[Emotion]:
        """Returns the labels that people gave to a scene."""
        return [entry.values["emotion"] for entry in self.state.of(step, row)]

    @cached_property
    def decisions(self) -> Mapping[str, Decision]:
        """What the labels of each scene amount to that can be labelled."""
        options = self.state.config.options
        return {row: decide(self.labels(LABEL, row), options) for row in self.texts}

    @cached_property
    def second_draw(self) -> frozenset[str]:
        """The scenes that people label who had no part in making the data (appendix A.5)."""
        chosen: set[str] = set()
        for kind in MODALITIES:
            some = [scene for scene in self.all if scene.modality == kind]
            chosen |= {some[place].row for place in self.drawn(some, self.state.config.options[f"second_{kind}"])}
        return frozenset(chosen & self.texts.keys())

    def people(self, *, second: bool) -> frozenset[str]:
        """Returns the people who gave second labels, or all who did anything else."""
        steps = [step for step in self.state.entries if (step == SECOND) == second]
        entries = (entry for step in steps for found in self.state.entries[step].values() for entry in found)
        return frozenset(entry.person for entry in entries if not entry.by_model)

    # What falls out of what is labelled

    @cached_property
    def dropped(self) -> Mapping[str, Dropped]:
        """Every scene that isn't part of what is built, by row."""
        found = dict(self.fallen)
        seen: dict[tuple[str, str, str], str] = {}
        shipped = frozenset(self.published_texts) if self.is_new else frozenset()
        for scene in self.all:
            if scene.row in found:
                continue
            told, decision = self.texts[scene.row], self.decisions[scene.row]
            key = (told.narrative.casefold(), told.question.casefold(), scene.image)
            if key in seen:
                found[scene.row] = Dropped(self.step, scene.row, f"the same text as {seen[key]}")
            elif not scene.image and told in shipped:
                found[scene.row] = Dropped(self.step, scene.row, "a scene of CEDAR")
            elif decision.gold is None:
                number = len(self.labels(LABEL, scene.row))
                few = number < decision.people
                reason = f"{number} of {decision.people} labels" if few else f"no gold label after {number} labels"
                found[scene.row] = Dropped(LABEL, scene.row, reason)
            elif self._is_alike_elsewhere(scene.id, decision.gold):
                found[scene.row] = Dropped(LABEL, scene.row, "the same gold label in all cultures")
            else:
                seen[key] = scene.row
        return found

    @cached_property
    def published_texts(self) -> Sequence[Told]:
        """The published scenes without image, as far as they are at hand, in English and the culture's language."""
        languages = [known for known in LANGUAGES if known in ("en", self.state.config.language)]
        return [
            Told(row.narrative.strip(), row.question.strip())
            for language in languages
            for modality, rows in published(self.state, language)
            if modality == "text"
            for row in rows
        ]

    def near_published(self) -> int:
        """Returns how many of the new scenes that are built are much like a published one."""
        ours = [" ".join(told) for row, told in self.texts.items() if row not in self.dropped] if self.is_new else []
        alike = near_duplicates(ours, [" ".join(told) for told in self.published_texts]) if ours else ()
        return len({pair.first for pair in alike})

    @cached_property
    def contrast(self) -> Mapping[str, Sequence[Emotion]]:
        """The gold labels of the other cultures, which the group brings in, by the id of the scene."""
        found: dict[str, list[Emotion]] = {}
        folder = self.state.folder / "inputs"
        for path in sorted(folder.glob("contrast*")) if self.is_new else ():
            table = read_file(path)
            for index, row in enumerate(validated(table, SceneRow)):
                if row.english_ver_answer:
                    place = f"{table.where(index)}, field 'english_ver_answer'"
                    found.setdefault(row.id, []).append(english_label(row.english_ver_answer, "en", place))
        return found

    def _is_alike_elsewhere(self, identifier: str, gold: Emotion) -> bool:
        others = self.contrast.get(identifier, ())
        drops = self.state.config.options.get("same_label") == "drop"
        return drops and bool(others) and set(others) == {gold}
