"""How a group adds to CEDAR: its language, in which it tells and labels the scenes that there are, or new scenes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from culture_tasks.benchmarks.cedar.built import STEMS
from culture_tasks.benchmarks.cedar.culture_steps import steps_of
from culture_tasks.benchmarks.cedar.documents import english_label
from culture_tasks.benchmarks.cedar.labels import EMOTIONS, Emotion
from culture_tasks.benchmarks.cedar.scenes import (
    NEW_SCENES,
    PIECES,
    Scene,
    contrast_labels,
    dropped,
    published_images,
    published_texts,
    scenes_of,
    words_of,
)
from culture_tasks.benchmarks.culture_rows import CultureWork
from culture_tasks.benchmarks.cultures import MODEL, Built, Config, CultureForm, Figure, State, Step
from culture_tasks.errors import DataError
from culture_tasks.metrics.near_duplicates import near_duplicates


class CedarForm(CultureForm):
    """CEDAR's construction (Dai et al., 2026, sections 2.2 to 2.5, appendices A.4, A.5 and D)."""

    def steps(self, config: Config) -> Sequence[Step]:
        """Returns the steps, in order."""
        return list(steps_of(self, config))

    def images(self, state: State) -> Mapping[str, Path]:
        """Returns the images of the published scenes."""
        return published_images(state)

    def check(self, state: State) -> Iterator[str]:
        """Yields what is wrong with options, and what is missing of scenes and images."""
        yield from super().check(state)
        scenes = scenes_of(state)
        if not scenes and state.config.way == NEW_SCENES:
            yield (
                f"{state.folder}: nothing to write scenes from. Put sentences into inputs/seeds.csv (columns id, "
                "sentence), images into images/, or name people in [people] of culture.toml."
            )
        elif not scenes:
            yield (
                f"{state.folder}: no scenes. Put CEDAR's English files into the folder cedar of CULTURE_TASKS_DATA, or "
                "scenes into inputs/scenes.json (id, narrative, question, image)."
            )
        there = {*state.images, *published_images(state)}
        for scene in scenes:
            if scene.image and scene.image not in there:
                yield f"{state.folder}: scene {scene.id!r}: no image {scene.image!r} in images/. Put it there."

    def agreement(self, state: State) -> Sequence[Figure]:
        """Returns how well labels agree, and how good translations are."""
        from culture_tasks.benchmarks.cedar.culture_agreement import figures

        return list(figures(state))

    def build(self, state: State) -> Built:
        """Returns the tables of the culture, as CEDAR has them, and the prompts in its language."""
        return CedarWork(state).build()


FORM = CedarForm()


class CedarWork(CultureWork):
    """What a group has made of a language or of scenes like CEDAR's."""

    def tables(self) -> Built:
        """Returns the scenes that have a gold label; raises DataError where there are none, or words are missing."""
        state, scenes = self.state, scenes_of(self.state)
        left_out = dropped(state, scenes)
        self.dropped += left_out.values()
        facts, figures = _facts(state), FORM.agreement(state)
        built = [scene for scene in scenes if scene.written and scene.row not in left_out]
        if not built:
            raise DataError(f"{state.folder}: no scene has a gold label. `culture-tasks culture agree` lists why.")
        for figure in figures:
            if figure.passes is False:
                raise DataError(
                    f"{state.folder}: {figure.name}, {figure.of}: {figure.value:.2f}. Expected at least "
                    f"{figure.floor:g}. Look for scenes and people that stand out, or set another floor in [options] "
                    "of culture.toml."
                )
        tables: dict[str, list[Mapping[str, Any]]] = {}
        for scene in built:
            table = f"{state.config.name}_{STEMS[scene.modality]}.json"
            tables.setdefault(table, []).append(_table_row(scene, facts["words"]))
        kinds = {scene.modality for scene in built}
        prompts = {kind: facts["prompts"][kind] for kind in STEMS if kind in kinds}
        return Built(
            tables=tables,
            images={scene.image: scene.image for scene in built if scene.image},
            dropped=self.dropped,
            counts={
                "scenes to begin with": sum(bool(scene.written or scene.row in left_out) for scene in scenes),
                "scenes that people labelled": sum(bool(scene.labels("label")) for scene in scenes),
                "labels": sum(len(scene.labels("label")) for scene in scenes),
                "second labels": sum(len(scene.labels("second")) for scene in scenes),
                "scenes with a minority label": sum(scene.decision.minority is not None for scene in built),
                "scenes built": len(built),
            },
            marks=[*self._drafts(built), *_marks(state, built, figures)],
            facts={**facts, "prompts": prompts},
        )

    def _drafts(self, built: Sequence[Scene]) -> Iterator[str]:
        """Yields how many drafts nobody changed; raises DataError where they are too many."""
        drafts = [(scene, found) for scene in built if (found := scene.drafts())]
        unchanged = sum(scene.text in [told for _, told in found] for scene, found in drafts)
        self.check_drafts(unchanged, len(drafts))
        if drafts:
            models = ", ".join(sorted({model for _, found in drafts for model, _ in found}))
            yield (
                f"{unchanged} of {len(drafts)} drafts of a model ({models}) stand as they were; people rewrote the "
                "others."
            )


def _table_row(scene: Scene, words: Mapping[str, str]) -> Mapping[str, Any]:
    gold, minority, _ = scene.decision
    row = {
        "id": scene.id,
        **scene.text._asdict(),
        "answer": words[str(gold)],
        "english_ver_answer": gold,
        "minority": minority,
    }
    return row | ({"image": scene.image} if scene.image else {})


def _facts(state: State) -> Mapping[str, Any]:
    """Returns the words of the language and the prompts that they make; raises DataError where some can't be used."""
    words, place = words_of(state), f"{state.folder}, step 'words'"
    for name in (*EMOTIONS, *PIECES):
        if name not in words:
            raise DataError(f"{place}, row {name!r}: nobody has translated it. Translate it.")
        if "{" in words[name] or "}" in words[name]:
            raise DataError(f"{place}, row {name!r}: found {words[name]!r:.80}. Expected no braces.")
    forms = [(words[emotion], emotion) for emotion in EMOTIONS] + list(_further_words(state))
    _check_forms(forms, place)
    options = state.config.options["separator"].join(words[emotion] for emotion in EMOTIONS)
    ending = f"[{words['options']}]: {options}\n{words['closing']}"
    slots = "[{narrative}]: {{narrative}}\n[{question}]: {{question}}", "[{question}]: {{narrative}}\n{{question}}"
    text, image = (slot.format(**words) for slot in slots)
    prompts = {
        "text": f"{words['text_instruction']}\n\n{text}\n\n{ending}",
        "multimodal": f"{words['image_instruction']}\n\n{image}\n\n{ending}",
    }
    return {"words": {emotion: words[emotion] for emotion in EMOTIONS}, "forms": dict(forms), "prompts": prompts}


def _further_words(state: State) -> Iterator[tuple[str, Emotion]]:
    place = f"{state.folder}: culture.toml, section [options], field 'further_words'"
    for form in state.config.options["further_words"]:
        emotion, _, word = form.partition("=")
        if not word.strip(" *"):
            raise DataError(f"{place}: found {form!r:.80}. Expected 'emotion=form', such as 'anger=angry'.")
        yield word.strip(), english_label(emotion, "en", place)


def _check_forms(forms: Iterable[tuple[str, Emotion]], place: str) -> None:
    """Raises DataError for words that a reader of replies can't distinguish."""
    from culture_tasks.benchmarks.cedar.reading.folding import fold

    owners: dict[str, tuple[str, Emotion]] = {}
    for word, emotion in forms:
        folded = fold(word.removesuffix("*")).strip()
        if not folded:
            raise DataError(f"{place}: found {word!r} for {emotion}. Expected a word with letters.")
        other, owner = owners.setdefault(folded, (word, emotion))
        if owner != emotion:
            raise DataError(
                f"{place}: {word!r} for {emotion} and {other!r} for {owner} are alike once case and accents are set "
                "aside, as replies are read. Choose another word for one of them."
            )


def _marks(state: State, built: Sequence[Scene], figures: Sequence[Figure]) -> Iterator[str]:
    for figure in figures:
        if figure.floor is not None and figure.missing:
            yield f"How well other people agree with its labels ({figure.of}) isn't known: {figure.missing}."
    if state.config.way != NEW_SCENES:
        return
    rows = [row for step in ("provisional", "with_image") for row in state.entries.get(step, {}).values()]
    if models := sorted({entry.person.removeprefix(MODEL) for entries in rows for entry in entries}):
        yield f"Its scenes were filtered by the emotions that models chose ({', '.join(models)})."
    published = published_texts(state)
    if not published:
        yield "Its scenes weren't compared with CEDAR's, which weren't at hand."
    pairs = near_duplicates([" ".join(scene.text) for scene in built], sorted(map(" ".join, published)))
    if near := len({pair.first for pair in pairs}):
        yield f"{near} scenes are much like published ones."
    if not contrast_labels(state):
        yield "Its scenes are labelled by one culture alone, so it isn't known whether cultures differ on them."
