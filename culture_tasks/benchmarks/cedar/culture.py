"""How a group adds to CEDAR: its language, in which it tells and labels the scenes that there are, or new scenes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from culture_tasks.benchmarks.cedar.documents import STEMS, english_label
from culture_tasks.benchmarks.cedar.labels import EMOTIONS, MODALITIES, OPTION_WORDS, Emotion, Language
from culture_tasks.benchmarks.cedar.metrics import top2_macro_f1
from culture_tasks.benchmarks.cedar.reading.folding import fold
from culture_tasks.benchmarks.cedar.scenes import (
    NEW_SCENES,
    ORIGINAL,
    PIECES,
    SENTENCE,
    CedarScenes,
    Scene,
    SceneText,
    contrast_languages,
    published_images,
)
from culture_tasks.benchmarks.culture_forms import (
    MODEL,
    Ask,
    BuiltTables,
    Config,
    CultureForm,
    Figure,
    SheetRow,
    State,
    Step,
)
from culture_tasks.benchmarks.culture_rows import ask_by, json_object, nominal_alpha, resampling_interval
from culture_tasks.benchmarks.interface import Decoding
from culture_tasks.errors import DataError
from culture_tasks.metrics.intervals import Interval, mean_interval, proportion_interval
from culture_tasks.metrics.near_duplicates import near_duplicates
from culture_tasks.prompt_files import load as load_prompt
from culture_tasks.vocabulary import language

_LANGUAGE = "Language"
"""Label of the language as whose speaker a model chooses."""

_Labels: TypeAlias = Sequence[Sequence[Emotion]]
"""Labels of each scene."""

_alpha = partial(nominal_alpha, vocabulary=EMOTIONS)

_FEWEST = 10
"""Scenes from which a figure is computed: fewer say nothing of the people, whatever the number is."""

_PRINTED = {  # lowest and highest of the seven languages in Table 2: alpha, mean pairwise F1
    "multimodal": ("0.693 to 0.773", "0.577 to 0.715"),
    "text": ("0.792 to 0.931", "0.650 to 0.810"),
}


class CedarWork(CedarScenes):
    """The usable entries of a language or of scenes like CEDAR's, and the rows of its steps."""

    def problems(self) -> Iterator[str]:
        """Yields what is missing of scenes and images."""
        folder = self.state.folder
        if not self.scenes and self.is_new:
            yield (
                f"{folder}: nothing to write scenes from. Put sentences into inputs/seeds.csv (columns id, sentence), "
                "images into images/, or name people in [people] of culture.toml."
            )
        elif not self.scenes:
            yield (
                f"{folder}: no scenes. Put CEDAR's English files into the folder cedar of CULTURE_TASKS_DATA, or "
                "scenes into inputs/scenes.json (id, narrative, question, image)."
            )
        there = {*self.state.images, *published_images(self.state)}
        for scene in self.scenes:
            if scene.image and scene.image not in there:
                yield f"{folder}: scene {scene.id!r}: no image {scene.image!r} in images/. Put it there."

    # The rows of people's steps

    def words_rows(self) -> list[SheetRow]:
        """Returns the words and parts of the prompt to translate, with the paper's words where it has the language."""
        paper_words: Mapping[Any, str] = OPTION_WORDS.get(cast("Language", self.config.language), {})
        english: Mapping[str, str] = {**dict(zip(EMOTIONS, EMOTIONS, strict=True)), **PIECES}
        values = {name: {"translation": paper_words[name]} if name in paper_words else {} for name in english}
        return [
            SheetRow(name=name, facts={"English": text}, values=values[name], group="words")
            for name, text in english.items()
        ]

    def words_back_rows(self) -> list[SheetRow]:
        """Returns the words to translate back, for other people than the translator."""
        translators = {name: frozenset({self.state.entries_of("words", name)[-1].person}) for name in self.words}
        return [
            SheetRow(name=name, facts={"Translation": word}, group="words_back", not_for=translators[name])
            for name, word in self.words.items()
        ]

    def tell_rows(self) -> list[SheetRow]:
        """Returns the scenes to tell; one that two people skipped, or its writer, is given to nobody."""
        skipped = {scene.row: len(self.state.skips(scene.step, scene.row)) for scene in self.scenes}
        return [
            SheetRow(
                name=scene.row,
                facts=scene.shown,
                image=scene.image,
                writer=scene.writer,
                values=_values([scene.translation, *(draft for _, draft in scene.drafts())][-1]),
                people=1 if skipped[scene.row] < (1 if scene.writer else 2) else 0,
            )
            for scene in self.scenes
        ]

    def check_rows(self) -> list[SheetRow]:
        """Returns what was told, for other people than who told it."""
        return [
            SheetRow(
                name=scene.row,
                facts={} if self.is_new else scene.shown,
                image=scene.image,
                values=_values(scene.unchecked_text),
                not_for=frozenset({self.state.entries_of(scene.step, scene.row)[-1].person}),
            )
            for scene in self.scenes
            if scene.unchecked_text and not scene.why_filtered
        ]

    def label_rows(self, *, again: bool = False) -> list[SheetRow]:
        """Returns the scenes to label, as soon as all words are there.

        They are for people who gave no labels in the other of the two steps and, the second time, had no other part.
        """
        if not self.words.keys() >= set(EMOTIONS):
            return []
        steps = self.state.entries
        entries = [
            entry for step in steps if (step == "second") != again for row in steps[step].values() for entry in row
        ]
        not_for = frozenset(entry.person for entry in entries if not entry.is_by_model)
        return [
            SheetRow(
                name=scene.row,
                facts=_texts_by_label(scene.text),
                image=scene.image,
                not_for=not_for,
                people=2 if again else scene.decision.people,
            )
            for scene in (self.second if again else self.scenes)
            if not scene.why_unlabelled
        ]

    # The rows of models' steps

    def sentence_rows(self) -> list[SheetRow]:
        """Returns the sentences of which scenes are made."""
        return [SheetRow(name=scene.row, facts=scene.shown) for scene in self.scenes if SENTENCE in scene.shown]

    def drafted_rows(self, step: str) -> list[SheetRow]:
        """Returns the rows of the sentences that a model has filled in at a step, as they are then."""
        scenes = [scene for scene in self.scenes if self.state.model_entries(step, scene.row)]
        return [SheetRow(name=scene.row, facts=_texts_by_label(scene.drafts(until=step)[-1][1])) for scene in scenes]

    def scene_rows(self) -> list[SheetRow]:
        """Returns the scenes that people told."""
        scenes = [(scene, scene.unchecked_text) for scene in self.scenes]
        return [
            SheetRow(name=scene.row, facts=_texts_by_label(text), image=scene.image) for scene, text in scenes if text
        ]

    def image_rows(self) -> list[SheetRow]:
        """Returns the told scenes with an image."""
        return [row for row in self.scene_rows() if row.image]

    def language_rows(self) -> list[SheetRow]:
        """Returns the told scenes without image, in each language as whose speaker a model chooses."""
        languages = contrast_languages(self.config)
        return [
            replace(
                row, name=f"{row.name}-{code}", facts={**row.facts, _LANGUAGE: _language_name(code)}, group=row.name
            )
            for row in self.scene_rows()
            for code in (languages if len(languages) > 1 and not row.image else ())
        ]

    # Agreement, and what is built

    def agreement(self) -> Iterator[Figure]:
        """Yields the agreement of labels by modality, what the check found, and how words came back.

        Table 2 doesn't say between whom it measures. Here alpha (nominal) is of the gold label and the second labels of
        each scene, and F1 the mean over the second labellers of macro F1 against the gold labels.
        """
        state, scenes, contrast = self.state, self.scenes, self.contrast
        labelled = [scene for scene in scenes if not scene.why_unlabelled]
        gold = [(scene, scene.decision.gold) for scene in labelled if scene.decision.gold]
        for kind in MODALITIES:
            label_sets = [scene.labels("label") for scene in labelled if scene.modality == kind]
            if not label_sets:
                continue
            first = [labels for labels in label_sets if len(labels) > 1]
            second = [(label, *scene.labels("second")) for scene, label in gold if scene.modality == kind]
            second = [labels for labels in second if len(labels) > 1]
            alpha, f1 = _PRINTED[kind]
            floor = self.options[f"floor_{kind}"] or None
            yield _figure("raw agreement of the first labels", kind, _interval(_raw_agreement, first))
            yield _figure("alpha of the first labels", kind, _interval(_alpha, first))
            yield _figure("alpha, second labels and gold", kind, _interval(_alpha, second), alpha, floor)
            yield _figure("mean F1 of second labels against gold", kind, _interval(_mean_f1, second), f1)
        checks = [entry.values for scene in scenes for entry in state.entries_of("check", scene.row)]
        for name, title, printed in (("fluency", "mean fluency", "9.36"), ("fidelity", "mean fidelity", "9.16")):
            if ratings := [values[name] for values in checks if values.get(name)]:
                yield _figure(title, "check", mean_interval(ratings), printed)
        if clean := [bool(values["clean"]) for values in checks if "clean" in values]:
            yield _figure(
                "share without words for emotions", "check", proportion_interval(sum(clean), len(clean)), "0.93"
            )
        if differs := [set(contrast[scene.id]) != {label} for scene, label in gold if scene.id in contrast]:
            yield _figure(
                "share of scenes on which the cultures differ", "label", proportion_interval(sum(differs), len(differs))
            )
        back = [
            str(entry.values["english"]).strip().casefold() == emotion
            for emotion in EMOTIONS
            for entry in state.entries_of("words_back", emotion)
        ]
        yield _figure(
            "share of words that come back as the same emotion", "words_back", proportion_interval(sum(back), len(back))
        )

    def tables(self) -> BuiltTables:
        """Returns the scenes that have a gold label; raises DataError where there are none, or words are missing."""
        state, scenes, left_out = self.state, self.scenes, self.dropped_scenes
        self.dropped += left_out.values()
        facts, figures = self.facts(), list(self.agreement())
        built = [scene for scene in scenes if scene.telling and scene.row not in left_out]
        if not built:
            raise DataError(f"{state.folder}: no scene has a gold label. `culture-tasks culture agree` lists why.")
        for figure in figures:
            if figure.passes is False:
                raise DataError(
                    f"{state.folder}: {figure.name}, {figure.group}: {figure.number.value:.2f}. Expected at least "
                    f"{figure.floor:g}. Look for scenes and people that stand out, or set another floor in [options] "
                    "of culture.toml."
                )
        tables: dict[str, list[Mapping[str, Any]]] = {}
        for scene in built:
            table = f"{state.config.name}_{STEMS[scene.modality]}.json"
            tables.setdefault(table, []).append(_table_row(scene, facts["words"]))
        kinds = {scene.modality for scene in built}
        prompts = {kind: facts["prompts"][kind] for kind in STEMS if kind in kinds}
        return BuiltTables(
            tables=tables,
            images={scene.image: scene.image for scene in built if scene.image},
            dropped=self.dropped,
            counts={
                "scenes to begin with": sum(bool(scene.telling or scene.row in left_out) for scene in scenes),
                "scenes that people labelled": sum(bool(scene.labels("label")) for scene in scenes),
                "labels": sum(len(scene.labels("label")) for scene in scenes),
                "second labels": sum(len(scene.labels("second")) for scene in scenes),
                "scenes with a minority label": sum(scene.decision.minority is not None for scene in built),
                "scenes built": len(built),
            },
            marks=list(self._marks(built, figures)),
            facts={**facts, "prompts": prompts},
        )

    def _marks(self, built: Sequence[Scene], figures: Sequence[Figure]) -> Iterator[str]:
        """Yields warnings for readers of the scores; raises DataError for too many drafts that nobody changed."""
        drafts = [(scene, scene_drafts) for scene in built if (scene_drafts := scene.drafts())]
        unchanged = sum(scene.text in [draft for _, draft in scene_drafts] for scene, scene_drafts in drafts)
        self.check_drafts(unchanged, len(drafts))
        if drafts:
            drafters = ", ".join(sorted({model for _, scene_drafts in drafts for model, _ in scene_drafts}))
            yield (
                f"{unchanged} of {len(drafts)} drafts of a model ({drafters}) stand as they were; people rewrote the "
                "others."
            )
        for figure in figures:
            if figure.floor is not None and figure.missing:
                yield f"How well other people agree with its labels ({figure.group}) isn't known: {figure.missing}."
        if not self.is_new:
            return
        rows = [row for step in ("provisional", "with_image") for row in self.state.entries.get(step, {}).values()]
        if models := sorted({entry.person.removeprefix(MODEL) for entries in rows for entry in entries}):
            yield f"Its scenes were filtered by the emotions that models chose ({', '.join(models)})."
        if not self.published_texts:
            yield "Its scenes weren't compared with CEDAR's, which weren't at hand."
        pairs = near_duplicates([" ".join(scene.text) for scene in built], sorted(map(" ".join, self.published_texts)))
        if near := len({pair.first for pair in pairs}):
            yield f"{near} scenes are much like published ones."
        if not self.contrast:
            yield "Its scenes are labelled by one culture alone, so it isn't known whether cultures differ on them."

    def facts(self) -> Mapping[str, Any]:
        """Returns the words and the prompts that they make; raises DataError where some can't be used."""
        words, place = self.words, f"{self.state.folder}, step 'words'"
        for name in (*EMOTIONS, *PIECES):
            if name not in words:
                raise DataError(f"{place}, row {name!r}: nobody has translated it. Translate it.")
            if "{" in words[name] or "}" in words[name]:
                raise DataError(f"{place}, row {name!r}: found {words[name]!r:.80}. Expected no braces.")
        forms = self._forms(place)
        options = self.options["separator"].join(words[emotion] for emotion in EMOTIONS)
        ending = f"[{words['options']}]: {options}\n{words['closing']}"
        slots = "[{narrative}]: {{narrative}}\n[{question}]: {{question}}", "[{question}]: {{narrative}}\n{{question}}"
        text, image = (slot.format(**words) for slot in slots)
        prompts = {
            "text": f"{words['text_instruction']}\n\n{text}\n\n{ending}",
            "multimodal": f"{words['image_instruction']}\n\n{image}\n\n{ending}",
        }
        return {"words": {emotion: words[emotion] for emotion in EMOTIONS}, "forms": forms, "prompts": prompts}

    def _forms(self, place: str) -> dict[str, Emotion]:
        """Returns the words in replies; raises DataError for those that their reader can't distinguish."""
        forms = [(self.words[emotion], emotion) for emotion in EMOTIONS]
        option = f"{self.state.folder}: culture.toml, section [options], field 'further_words'"
        for form in self.options["further_words"]:
            name, _, word = form.partition("=")
            if not word.strip(" *"):
                raise DataError(f"{option}: found {form!r:.80}. Expected 'emotion=form', such as 'anger=angry'.")
            forms.append((word.strip(), english_label(name, "en", option)))
        owners: dict[str, tuple[str, Emotion]] = {}
        for word, emotion in forms:
            folded = fold(word.removesuffix("*")).strip()
            if not folded:
                raise DataError(f"{place}: found {word!r} for {emotion}. Expected a word with letters.")
            earlier, owner = owners.setdefault(folded, (word, emotion))
            if owner != emotion:
                raise DataError(
                    f"{place}: {word!r} for {emotion} and {earlier!r} for {owner} are alike once case and accents are "
                    "set aside, as replies are read. Choose another word for one of them."
                )
        return dict(forms)


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


def _texts_by_label(telling: SceneText) -> dict[str, str]:
    return {label: text for label, text in zip(ORIGINAL, telling, strict=True) if text}


def _values(telling: SceneText | None) -> dict[str, str]:
    return {name: text for name, text in telling._asdict().items() if text} if telling else {}


def _language_name(code: str) -> str:
    try:
        return language(code).name
    except KeyError:
        raise DataError(f"culture.toml: no language {code!r}. Expected a code of ISO 639, such as 'am'.") from None


def _figure(name: str, subject: str, interval: Interval, printed: str = "", floor: float | None = None) -> Figure:
    few = Interval(n=interval.n, reason=f"{interval.n} of the {_FEWEST} that it needs at least")
    return Figure(name, subject, few if interval.n < _FEWEST else interval, printed, floor)


def _interval(measure: Callable[[_Labels], Interval], labels: _Labels) -> Interval:
    """Returns a measure of the labels of scenes, where they are enough."""
    return measure(labels) if len(labels) >= _FEWEST else Interval(n=len(labels))


def _raw_agreement(labels: _Labels) -> Interval:
    pairs = [[first == second for first, second in combinations(scene_labels, 2)] for scene_labels in labels]
    shares = np.array([sum(matches) / len(matches) for matches in pairs])
    return resampling_interval(lambda places: float(shares[places].mean()), len(labels))


def _mean_f1(labels: _Labels) -> Interval:
    """Mean of macro F1 against the first label of each scene, over the others in their order."""

    def measure(places: NDArray[np.int64]) -> float:
        sample = [labels[place] for place in places]
        scores = []
        for person in range(1, max(map(len, sample))):
            golds, predictions = zip(*((row[0], row[person]) for row in sample if person < len(row)), strict=True)
            scores.append(top2_macro_f1(predictions, golds, [None] * len(golds)))
        return float(np.mean(scores))

    return resampling_interval(measure, len(labels))


# What models are asked, and how their replies are read


_LABELS = {"narrative": "Narrative", "question": "Question", "sentence_form": SENTENCE, "language": _LANGUAGE}
_LABELS |= {f"refined_{name}": _LABELS[name] for name in ("narrative", "question")}


def _ask(name: str, read: Callable[[str], Mapping[str, Any]], *, shows_image: bool = False) -> Ask:
    return ask_by(load_prompt(__package__, name), read, Decoding(max_tokens=512), _LABELS, shows_image=shows_image)


def _read_texts(keys: tuple[str, str], reply: str) -> Mapping[str, str]:
    """Returns the narrative and the question of a reply in JSON, by its keys; an empty one is left out."""
    content = json_object(reply)
    texts = [content.get(key) for key in keys]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"expected JSON with the texts {' and '.join(keys)}")
    return _values(SceneText(*(str(text).strip() for text in texts)))


def _read_without_emotions(reply: str) -> Mapping[str, Any]:
    if "no need to modify" in reply.casefold():
        return {"changed": False}
    narrative = _read_texts(("hidden_emotion_narrative",) * 2, reply).get("narrative", "")
    return {"changed": True, "narrative": narrative}


def _read_outcome(outcomes: tuple[str, str], reply: str) -> Mapping[str, Any]:
    """Returns whether a reply names the second of two outcomes."""
    text = reply.strip(" \n\"'.`*").casefold()
    if text not in outcomes:
        raise ValueError(f"expected {outcomes[0]!r} or {outcomes[1]!r}")
    return {"keep": text == outcomes[1]}


def _read_emotion(reply: str) -> Mapping[str, Any]:
    from culture_tasks.benchmarks.cedar.reading.choice import read_reply

    if (emotion := read_reply(reply)) is None:
        raise ValueError("expected one of the 14 emotions")
    return {"emotion": emotion}


# The form


def _emotion_words(state: State) -> Mapping[str, str]:
    return {name: word for name, word in CedarWork(state).words.items() if name in EMOTIONS}


class CedarForm(CultureForm):
    """CEDAR's construction (Dai et al., 2026, sections 2.2 to 2.5, appendices A.4, A.5 and D)."""

    work = CedarWork

    def steps(self, config: Config) -> Iterator[Step]:
        """Yields the steps of a way, in order."""
        step = partial(self.step, config, choices={"emotion": dict(zip(EMOTIONS, EMOTIONS, strict=True))})
        yield step("words", CedarWork.words_rows)
        yield step("words_back", CedarWork.words_back_rows)
        texts = partial(_read_texts, ("narrative", "question"))
        if config.way == NEW_SCENES:
            # Drafts of sentences by models (section 2.3)
            yield step("draft", CedarWork.sentence_rows, ask=_ask("scene.v1", texts))
            refined = partial(_read_texts, ("refined_narrative", "refined_question"))
            yield step(
                "second_person", partial(CedarWork.drafted_rows, step="draft"), ask=_ask("second_person.v1", refined)
            )
            ask = _ask("no_emotion_words.v1", _read_without_emotions)
            yield step("no_emotion_words", partial(CedarWork.drafted_rows, step="second_person"), ask=ask)
            yield step("write", CedarWork.tell_rows)
            # Filters by models, and alignment with images (sections 2.3 and 2.4)
            for name, outcomes in (("social", ("not social-related", "social-related")), ("safe", ("unsafe", "safe"))):
                yield step(name, CedarWork.scene_rows, ask=_ask(f"{name}.v1", partial(_read_outcome, outcomes)))
            yield step("provisional", CedarWork.language_rows, ask=_ask("provisional.v1", _read_emotion))
            rewritten = partial(_read_texts, ("rewritten_narrative", "rewritten_question"))
            yield step("align", CedarWork.image_rows, ask=_ask("align.v1", rewritten, shows_image=True))
            for name in ("with_image", "without_image"):
                ask = _ask(f"{name}.v1", _read_emotion, shows_image=name == "with_image")
                yield step(name, CedarWork.image_rows, ask=ask)
        else:
            labels = {name: ORIGINAL[_LABELS[name]] for name in ("narrative", "question")}
            prompt, slots = load_prompt(__package__, "translate.v1"), {"language": _language_name(config.language)}
            ask = ask_by(prompt, texts, Decoding(max_tokens=512), labels, values=slots)
            yield step("translate", CedarWork.tell_rows, ask=ask, by_people=True)
        yield step("check", CedarWork.check_rows, text=f"check_{config.way}")
        yield step("label", CedarWork.label_rows, labels=_emotion_words)
        yield step("second", partial(CedarWork.label_rows, again=True), labels=_emotion_words)

    def images(self, state: State) -> Mapping[str, Path]:
        """Returns the images of the published scenes."""
        return published_images(state)


FORM = CedarForm()
