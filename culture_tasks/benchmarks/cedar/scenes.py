"""The scenes of a group's project: their sources, how far they are, and their gold labels."""

from __future__ import annotations

import re
from abc import ABC
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from culture_tasks.benchmarks.cedar.documents import FOLDER, SOURCES, CedarRow, english_label, image_name
from culture_tasks.benchmarks.cedar.labels import EMOTIONS, MODALITIES, Emotion, Modality
from culture_tasks.benchmarks.culture_forms import MODEL, Config, CultureWork, DroppedRow, State
from culture_tasks.benchmarks.culture_rows import digest, random_order
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

NEW_SCENES = "scenes"
"""The way in which a group makes scenes; in the other it takes existing scenes over into its language."""

TELLING: Mapping[str, str] = {"language": "translate", NEW_SCENES: "write"}
"""The step of each way in which people tell scenes in the culture's language."""

PIECES: Mapping[str, str] = {
    "text_instruction": "Read the following narrative and select ONE emotion that best matches the situation.",
    "image_instruction": "Read the following image and question, and select ONE emotion that best matches the "
    "situation.",
    "narrative": "narrative",
    "question": "question",
    "options": "options",
    "closing": "Now, [your answer] is:",
}
"""The parts of the prompts of Figures 9 and 10 beside the words for emotions, in English."""

ORIGINAL = {"Narrative": "Original narrative", "Question": "Original question"}
"""Labels of the original texts, by the labels of their translations."""

SENTENCE = "Sentence"

_DRAFTS = ("translate", "draft", "second_person", "no_emotion_words", "align")
_MODELS = 3  # whose provisional labels decide (section 2.3)


class SceneRow(CedarRow):
    """A scene that a group takes over; it may have another culture's label."""

    answer: OptionalLabel = None  # type: ignore[assignment]


class Seed(TableRow):
    """A sentence from which a scene is made."""

    id: Identifier
    sentence: Text
    source: OptionalLabel = None


class SceneText(NamedTuple):
    """A narrative and its question."""

    narrative: str
    question: str

    @classmethod
    def read(cls, values: Mapping[str, Any], previous: SceneText | None = None) -> SceneText:
        """Returns the texts that were filled in; an empty one is as it was before."""
        return cls(*(str(values.get(name) or getattr(previous, name, "")).strip() for name in cls._fields))


class Decision(NamedTuple):
    """Gold and minority label of a scene, where it has them, and how many people have to label it."""

    gold: Emotion | None
    minority: Emotion | None
    people: int


def decide(labels: Sequence[Emotion], options: Mapping[str, Any]) -> Decision:
    """Returns the decision that labels lead to, by the group's rule."""
    first, rule = max(options["labels"], 1), options["gold_rule"]
    if len(labels) < first:
        return Decision(None, None, first)
    most = first + options["further_labels"]
    counts = [*Counter(labels).most_common(), (None, 0)]
    (gold, top), (minority, second) = counts[:2]
    has_plurality = rule == "plurality" or (rule != "majority" and len(labels) >= most)
    if not (top * 2 > len(labels) or (has_plurality and top > second)):
        return Decision(None, None, most)
    has_minority = 0 < options["minority_labels"] <= second and [number for _, number in counts].count(second) == 1
    return Decision(gold, minority if has_minority else None, len(labels))


def row_name(kind: str, identifier: str) -> str:
    """Returns the name of a row for any id, with a hash where characters are replaced that names can't have."""
    clean = re.sub(r"[^A-Za-z0-9_.-]", "-", identifier)[:60]
    return f"{kind}-{clean}" if clean == identifier else f"{kind}-{clean}-{digest(identifier)}"


@dataclass(frozen=True)
class Scene:
    """A scene, and all that the entries of a project say of it."""

    state: State
    row: str
    id: str
    shown: Mapping[str, str] = field(default_factory=dict)  # the original, or a sentence, by label
    image: str = ""
    writer: str = ""  # the one person who may tell it; empty for anyone
    translation: SceneText | None = None  # the published one

    @property
    def modality(self) -> Modality:
        """Whether it has an image."""
        return "multimodal" if self.image else "text"

    @property
    def step(self) -> str:
        """The step in which people tell it in the culture's language."""
        return TELLING[self.state.config.way]

    def drafts(self, until: str = "align") -> list[tuple[str, SceneText]]:
        """Returns the models' drafts of it, each with its model."""
        drafts: list[tuple[str, SceneText]] = []
        for step in _DRAFTS[: _DRAFTS.index(until) + 1]:
            for entry in self.state.model_entries(step, self.row):
                previous = drafts[-1][1] if drafts and step == "no_emotion_words" else None  # which fills in one text
                drafts.append((entry.person.removeprefix(MODEL), SceneText.read(entry.values, previous)))
        return drafts

    @cached_property
    def telling(self) -> SceneText | None:
        """How people told it last; None where nobody did."""
        tellings = self.state.entries_of(self.step, self.row)
        return SceneText.read(tellings[-1].values) if tellings else None

    @cached_property
    def unchecked_text(self) -> SceneText | None:
        """How people find it to check: as it was told, or as a model aligned it with its image after that."""
        aligned = self.state.model_entries("align", self.row)[-1:] if self.telling else ()
        return SceneText.read(aligned[0].values) if aligned else self.telling

    @cached_property
    def text(self) -> SceneText:
        """How the check left it; a narrative that was deleted is there no more, where a question is."""
        values = next((entry.values for entry in reversed(self.state.entries_of("check", self.row))), {})
        return SceneText.read(values, None if values.get("question") else self.unchecked_text)

    @cached_property
    def why_unlabelled(self) -> tuple[str, str] | None:
        """The step at which it stays or falls out before people label it, and why."""
        is_new, checks = self.step == "write", self.state.entries_of("check", self.row)
        done = "written" if is_new else "translated"
        shortest = self.state.config.options["shortest"] if is_new and not self.image else 0
        if self.unchecked_text is None:
            is_skipped = bool(self.state.skips(self.step, self.row))
            return self.step, "skipped" if is_skipped else f"nobody has {done} it"
        if reason := self.why_filtered:
            return reason
        if not checks:
            return "check", "skipped" if self.state.skips("check", self.row) else "nobody has checked it"
        if not all(entry.values["possible"] for entry in checks):
            return "check", "impossible in the culture"
        if self.shown.get(ORIGINAL["Narrative"]) and not self.text.narrative:
            return "check", "its narrative is missing"
        if len(self.text.narrative) < shortest:
            return "check", f"its narrative has fewer than {shortest} characters"
        return ("check", "it names an emotion") if is_new and not checks[-1].values.get("clean") else None

    @cached_property
    def why_filtered(self) -> tuple[str, str] | None:
        """The step of models by which a new scene falls out, and why."""
        for step, reason in (("social", "no social scene, by a model"), ("safe", "unsafe, by a model")):
            if not all(entry.values["keep"] for entry in self.state.model_entries(step, self.row)[-1:]):
                return step, reason
        if self._model_emotions("with_image").items() & self._model_emotions("without_image").items():
            return "without_image", "its image isn't needed: a model names the same emotion without it"
        languages = contrast_languages(self.state.config)
        labels = {code: list(self._model_emotions("provisional", f"-{code}").values()) for code in languages}
        tops = {code: Counter(names).most_common(1)[0] for code, names in labels.items() if len(names) >= _MODELS}
        for code, (_, number) in tops.items():
            if number == 1:
                return "provisional", f"the models name different emotions as speakers of {code}"
        if len(tops) == len(languages) > 1 and len({emotion for emotion, _ in tops.values()}) == 1:
            return "provisional", "the same provisional label in all languages"
        return None

    def _model_emotions(self, step: str, ending: str = "") -> Mapping[str, Emotion]:
        entries = self.state.model_entries(step, f"{self.row}{ending}")
        return {entry.person: entry.values["emotion"] for entry in entries}

    def labels(self, step: str) -> list[Emotion]:
        """Returns the labels that people gave to it in a step."""
        return [entry.values["emotion"] for entry in self.state.entries_of(step, self.row)]

    @cached_property
    def decision(self) -> Decision:
        """The decision that its labels lead to."""
        return decide(self.labels("label"), self.state.config.options)


def contrast_languages(config: Config) -> list[str]:
    """Returns the codes of the languages as whose speakers models give provisional labels."""
    return list(dict.fromkeys((config.language, *config.options.get("contrast_languages", ()))))


# Where they come from


def input_table(state: State, stem: str) -> RowTable | None:
    """Returns a table of the project's ``inputs``; None where it isn't there."""
    paths = [path for suffix in SUFFIXES if (path := state.folder / "inputs" / f"{stem}{suffix}").is_file()]
    return read_file(paths[0]) if paths else None


def published_rows(state: State, *languages: str) -> Iterator[tuple[Modality, SceneRow]]:
    """Yields the scenes of CEDAR in some languages, as far as they are in the user's folder."""
    for (modality, language), source in SOURCES.items():
        if language in languages:
            with suppress(DataUnavailableError):
                yield from ((modality, row) for row in validated(read_source(source, state.data_folder), SceneRow))


def published_images(state: State) -> Mapping[str, Path]:
    """Returns the images of the scenes in the user's folder, by name; none where the group brings in scenes."""
    if state.config.way == NEW_SCENES or state.data_folder is None or input_table(state, "scenes") is not None:
        return {}
    folder = state.data_folder / FOLDER
    names = [image_name(folder, row) for modality, row in published_rows(state, "en") if modality != "text"]
    paths = [path for name in names for path in (folder / "images" / name, folder / name) if path.is_file()]
    return {path.name: path for path in paths if path.resolve().is_relative_to(folder.resolve())}


def _draw(scenes: Sequence[Scene], seed: int, draw: str, numbers: Mapping[Modality, int]) -> list[Scene]:
    """Returns so many scenes of each modality, in their order."""
    names = {kind: [scene.row for scene in scenes if scene.modality == kind] for kind in MODALITIES}
    rows = {row for kind in MODALITIES for row in random_order(names[kind], seed, draw)[: numbers[kind]]}
    return [scene for scene in scenes if scene.row in rows]


class CedarScenes(CultureWork, ABC):
    """The scenes of a project, told or not."""

    @cached_property
    def is_new(self) -> bool:
        """Whether the group makes scenes."""
        return self.config.way == NEW_SCENES

    @cached_property
    def scenes(self) -> list[Scene]:
        """The scenes to work on, told or not; raises DataError for tables that can't be used."""
        return list(self._to_write()) if self.is_new else self._to_translate()

    def _to_write(self) -> Iterator[Scene]:
        state = self.state
        if (table := input_table(state, "seeds")) is not None:
            rows = validated(table, Seed)
            for identifier, seed in zip(unique(table, (row.id for row in rows), "id"), rows, strict=True):
                row = row_name("seed", identifier)
                yield Scene(state, row, row, {SENTENCE: seed.sentence})
        for image in state.images:
            row = row_name("image", image)
            yield Scene(state, row, row, image=image)
        numbers = range(1, self.options["blanks"] + 1)
        blanks = {f"blank-{person}-{number}": person for person in self.config.doers("write") for number in numbers}
        entries = state.entries.get("write", {})  # those of people who have left, too
        blanks |= {row: tellings[-1].person for row, tellings in entries.items() if row.startswith("blank-")}
        for row, person in blanks.items():
            yield Scene(state, row, row, writer=person)

    def _to_translate(self) -> list[Scene]:
        state = self.state
        table, folder = input_table(state, "scenes"), (state.data_folder or Path()) / FOLDER
        stems = {name.rpartition(".")[0]: name for name in state.images}
        if table is not None:
            parts = [(row, row.image or stems.get(row.id, "")) for row in validated(table, SceneRow)]
        else:
            parts = [
                (row, Path(image_name(folder, row)).name if modality == "multimodal" else "")
                for modality, row in published_rows(state, "en")
            ]
        kinds = {"multimodal": "image", "text": "text"}
        translations = {
            row_name(kinds[modality], row.id): SceneText.read(row.model_dump())
            for modality, row in published_rows(state, self.config.language)
        }
        scenes: dict[str, Scene] = {}
        for row, image in parts:
            name = row_name("image" if image else "text", row.id)
            if name in scenes:
                where = table.origin if table else FOLDER
                raise DataError(f"{where}, field 'id': {row.id!r} occurs twice. Expected a different one in each row.")
            texts = {ORIGINAL["Narrative"]: row.narrative.strip(), ORIGINAL["Question"]: row.question.strip()}
            texts = {label: text for label, text in texts.items() if text}
            scenes[name] = Scene(state, name, row.id, texts, image, translation=translations.get(name))
        most = self.options["most_scenes"] or len(scenes)
        return _draw(list(scenes.values()), self.config.seed, "scenes", dict.fromkeys(MODALITIES, most))

    @cached_property
    def second(self) -> list[Scene]:
        """The scenes that people label who had no part in making the data (appendix A.5)."""
        numbers = {kind: self.options[f"second_{kind}"] for kind in MODALITIES}
        return _draw(self.scenes, self.config.seed, "second", numbers)

    @cached_property
    def dropped_scenes(self) -> dict[str, DroppedRow]:
        """Every scene that isn't built, by row, but for empty rows of writers."""
        dropped: dict[str, DroppedRow] = {}
        first: dict[tuple[str, str, str], str] = {}
        step = TELLING[self.config.way]
        shipped = self.published_texts if self.is_new else ()
        contrast = self.contrast if self.options.get("same_label") == "drop" else {}
        entries = self.state.entries.get(step, {})
        for scene in self.scenes:
            key = (scene.text.narrative.casefold(), scene.text.question.casefold(), scene.image)
            reason = scene.why_unlabelled
            if not reason and key in first:
                reason = step, f"the same text as {first[key]}"
            elif not reason and not scene.image and scene.text in shipped:
                reason = step, "a scene of CEDAR"
            elif not reason and scene.decision.gold is None:
                number, people = len(scene.labels("label")), scene.decision.people
                few = f"{number} of {people} labels"
                reason = "label", few if number < people else f"no gold label after {number} labels"
            elif not reason and set(contrast.get(scene.id, ())) == {scene.decision.gold}:
                reason = "label", "the same gold label in all cultures"
            if reason is None:
                first[key] = scene.row
            elif scene.row in entries or not scene.writer:
                dropped[scene.row] = DroppedRow(reason[0], scene.row, reason[1])
        orphans = sorted(entries.keys() - {scene.row for scene in self.scenes})
        return dropped | {
            row: DroppedRow(step, row, "its sentence, image or original is no longer there") for row in orphans
        }

    @cached_property
    def published_texts(self) -> frozenset[SceneText]:
        """The published scenes without image in the user's folder, in English and the culture's language."""
        rows = published_rows(self.state, "en", self.config.language)
        return frozenset(SceneText.read(row.model_dump()) for modality, row in rows if modality == "text")

    @cached_property
    def contrast(self) -> Mapping[str, Sequence[Emotion]]:
        """The gold labels of other cultures, which the group brings in, by the id of the scene."""
        golds: dict[str, list[Emotion]] = {}
        for path in sorted((self.state.folder / "inputs").glob("contrast*")) if self.is_new else ():
            table = read_file(path)
            for index, row in enumerate(validated(table, SceneRow)):
                if row.english_ver_answer:
                    place = f"{table.where(index)}, field 'english_ver_answer'"
                    golds.setdefault(row.id, []).append(english_label(row.english_ver_answer, "en", place))
        return golds

    @cached_property
    def words(self) -> Mapping[str, str]:
        """The words for emotions and the pieces of the prompt in the culture's language, as far as they are."""
        return {
            row: str(entries[-1].values["translation"]).strip()
            for row in (*EMOTIONS, *PIECES)
            if (entries := self.state.entries_of("words", row))
        }
