"""How a group adds to CEDAR: its language, in which it tells and labels the scenes that there are, or new scenes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from culture_tasks.benchmarks.cedar.culture_steps import steps_of
from culture_tasks.benchmarks.cedar.documents import english_label
from culture_tasks.benchmarks.cedar.labels import EMOTIONS, MODALITIES
from culture_tasks.benchmarks.cedar.scenes import LABEL, NEW_SCENES, PIECES, SECOND, WORDS, Scenes
from culture_tasks.benchmarks.cultures import Built, Config, CultureForm, Figure, Option, State, Step
from culture_tasks.errors import DataError

_WAYS = {
    "language": "the scenes of CEDAR, or of another group, in a further language, labelled by its speakers",
    NEW_SCENES: "new scenes, told and labelled by the group",
}


class CedarForm(CultureForm):
    """CEDAR's construction (Dai et al., 2026, sections 2.2 to 2.5, appendices A.4, A.5 and D)."""

    ways = _WAYS
    paper = (
        "CEDAR tells one scene in several languages, and native speakers of each choose one of 14 emotions. The answer "
        "is the choice of most of at least five people. Scenes are worth having where cultures differ, so labels of at "
        "least two cultures are needed to know that. The full English scenes are given by the authors on request; 25 "
        "are public. The paper says nothing of its annotators but that they are native speakers: say in the data card "
        "where yours live, how they were paid and what they agreed to."
    )

    def options(self, way: str) -> Sequence[Option]:
        """Returns what a group decides beforehand."""
        return (*_OPTIONS, *(_OPTIONS_OF_NEW_SCENES if way == NEW_SCENES else _OPTIONS_OF_A_LANGUAGE))

    def steps(self, config: Config) -> Sequence[Step]:
        """Returns the steps, in order; raises DataError for a number of the options that makes no sense."""
        for name, value in config.options.items():
            if isinstance(value, int) and value < (least := 1 if name in ("labels", "longest") else 0):
                raise DataError(
                    f"culture.toml, section [options], field {name!r}: found {value}. Expected {least} or more."
                )
        return steps_of(config)

    def images(self, state: State) -> Mapping[str, Path]:
        """Returns the images of the published scenes."""
        return Scenes(state).published_images

    def check(self, state: State) -> Iterable[str]:
        """Yields what is missing of scenes and images."""
        scenes = Scenes(state)
        if scenes.is_new and not (scenes.seeds or scenes.pictures or scenes.blanks):
            yield (
                f"{state.folder}: nothing to write scenes from. Put sentences into inputs/seeds.csv (columns id, "
                "sentence), images into images/, or name people in [people] of culture.toml."
            )
        if not scenes.is_new and not scenes.all:
            yield (
                f"{state.folder}: no scenes. Put CEDAR's English files into the folder cedar of CULTURE_TASKS_DATA, or "
                "scenes into inputs/scenes.json (id, narrative, question, image)."
            )
        there = {*state.images, *scenes.published_images}
        for scene in scenes.all:
            if scene.image and scene.image not in there:
                yield f"{state.folder}: scene {scene.id!r}: no image {scene.image!r} in images/. Put it there."

    def agreement(self, state: State) -> Sequence[Figure]:
        """Returns how well labels agree, and how good translations are."""
        from culture_tasks.benchmarks.cedar.culture_agreement import figures

        return list(figures(Scenes(state)))

    def build(self, state: State) -> Built:
        """Returns the tables of the culture, as CEDAR has them, and the prompts in its language."""
        scenes = Scenes(state)
        facts = _facts(scenes)
        tables, images = _tables(scenes)
        if not tables:
            raise DataError(f"{state.folder}: no scene has a gold label. `culture-tasks culture agree` says why.")
        figures = self.agreement(state)
        for figure in figures:
            if figure.passes is False:
                raise DataError(
                    f"{state.folder}: {figure.name}, {figure.of}: {figure.value:.2f}. Expected at least "
                    f"{figure.floor:g}. Look for scenes and people that stand out, or set another floor in [options] "
                    "of culture.toml."
                )
        return Built(
            tables=tables,
            images=images,
            dropped=list(scenes.dropped.values()),
            counts=_counts(scenes, tables),
            marks=list(_marks(scenes, figures)),
            facts={
                **facts,
                "prompts": {key: facts["prompts"][key] for key in MODALITIES if _stem(scenes, key) in tables},
            },
        )


FORM = CedarForm()


# What a group decides

_OPTIONS = (
    Option(
        name="labels",
        default=5,
        about="How many people label each scene? The paper: at least five (section 2.5).",
    ),
    Option(
        name="further_labels",
        default=2,
        about="How many more label a scene on which the first don't agree? The paper: two (section 2.5).",
    ),
    Option(
        name="gold_rule",
        default="majority_then_plurality",
        choices=("majority", "plurality", "majority_then_plurality"),
        about="Which label is gold? 'majority': more than half of all labels, else the scene is dropped. 'plurality': "
        "the most frequent one. 'majority_then_plurality': more than half, and after the further labels the most "
        "frequent one. Ties are dropped. The paper says majority, and not what happens to scenes that have none after "
        "seven labels; since each of its scenes has a label in each language, the default takes the most frequent one.",
    ),
    Option(
        name="minority_labels",
        default=2,
        about="How many people have to give the second most frequent label for it to count as the minority label? 0 "
        "gives none. The paper counts 'valid' ones without the rule (appendix B); a single person may have slipped.",
    ),
    Option(
        name="second_multimodal",
        default=70,
        about="How many scenes with an image are labelled again by two people who had no part in the data? The paper: "
        "70.",
    ),
    Option(
        name="second_text",
        default=100,
        about="How many scenes without image are labelled again? The paper: 100 (appendix A.5).",
    ),
    Option(
        name="floor_multimodal",
        default=0.69,
        about="Krippendorff's alpha of the second labels with the gold ones, below which scenes with an image aren't "
        "built; -1 for any. The paper has no threshold; 0.69 is what its lowest language reaches (Table 2).",
    ),
    Option(
        name="floor_text",
        default=0.79,
        about="The same for scenes without image; 0.79 is what the paper's lowest language reaches.",
    ),
    Option(
        name="most_unchanged",
        default=0.5,
        about="The largest share of texts drafted by a model that nobody changed. The paper doesn't give its own; "
        "where more than half are unchanged, nobody may have read them.",
    ),
    Option(
        name="separator",
        default=", ",
        about="What stands between the words for emotions in the prompt, such as ', ' or '、' (Figures 9 and 10).",
    ),
    Option(
        name="further_words",
        default=[],
        about="Further forms of the words for emotions that replies may have, each as 'emotion=form' with the English "
        "emotion first, such as 'anger=angry'. A '*' at the end allows any ending. The seven languages of the paper "
        "have lists of inflected forms in this package; another language has what you give.",
    ),
)

_OPTIONS_OF_A_LANGUAGE = (
    Option(
        name="most_scenes",
        default=0,
        about="At most so many scenes with an image, and as many without, drawn by the seed; 0 takes all. The paper: "
        "400 and 1,166. About 200 are needed for an accuracy, 400 for biases.",
    ),
)

_OPTIONS_OF_NEW_SCENES = (
    Option(
        name="blanks",
        default=20,
        about="How many scenes may each writer write without a sentence or an image to begin from?",
    ),
    Option(
        name="shortest",
        default=50,
        about="Fewest characters of a narrative without image. The paper: 50, without saying of what (section 2.3); a "
        "script without spaces needs about a third.",
    ),
    Option(
        name="longest",
        default=200,
        about="Most characters of a narrative. The paper: 200; a script without spaces needs about a third.",
    ),
    Option(
        name="contrast_languages",
        default=[],
        about="Codes of languages as whose speakers models give provisional labels, besides your own: scenes with the "
        "same one in all are dropped. The paper has seven. Without any, models give none.",
    ),
    Option(
        name="same_label",
        default="keep",
        choices=("keep", "drop"),
        about="What happens to a scene whose gold label is the same in the cultures of inputs/contrast*.json? The "
        "paper filters by provisional labels alone, and doesn't say that it drops any scene later.",
    ),
)


# What is built


def _stem(scenes: Scenes, modality: str) -> str:
    return f"{scenes.state.config.name}_{'inq' if modality == 'multimodal' else 'nq'}.json"


def _tables(scenes: Scenes) -> tuple[Mapping[str, Sequence[Mapping[str, Any]]], Mapping[str, str]]:
    tables: dict[str, list[Mapping[str, Any]]] = {}
    images: dict[str, str] = {}
    for scene in scenes.all:
        if scene.row in scenes.dropped:
            continue
        told, decision = scenes.texts[scene.row], scenes.decisions[scene.row]
        assert decision.gold is not None
        row = {
            "id": scene.id,
            "narrative": told.narrative,
            "question": told.question,
            "answer": scenes.words[decision.gold],
            "english_ver_answer": decision.gold,
            "minority": decision.minority,
        }
        if scene.image:
            row["image"] = images[scene.image] = scene.image
        tables.setdefault(_stem(scenes, scene.modality), []).append(row)
    return tables, images


def _facts(scenes: Scenes) -> Mapping[str, Any]:
    """Returns the words of the language and the prompts that they make; raises DataError where some can't be used."""
    from culture_tasks.benchmarks.cedar.reading.folding import fold

    words, folder = scenes.words, scenes.state.folder
    if missing := [name for name in (*EMOTIONS, *PIECES) if name not in words]:
        raise DataError(f"{folder}, step {WORDS!r}, row {missing[0]!r}: nobody has translated it. Translate it.")
    for name, word in words.items():
        if "{" in word or "}" in word:
            raise DataError(f"{folder}, step {WORDS!r}, row {name!r}: found {word!r:.80}. Expected no braces.")
    forms: list[tuple[str, str]] = [(words[emotion], emotion) for emotion in EMOTIONS]
    for form in scenes.state.config.options["further_words"]:
        emotion, equals, word = form.partition("=")
        place = f"{folder}: culture.toml, section [options], field 'further_words'"
        if not equals or not word.strip(" *"):
            raise DataError(f"{place}: found {form!r:.80}. Expected 'emotion=form', such as 'anger=angry'.")
        forms.append((word.strip(), english_label(emotion, "en", place)))
    owners: dict[str, tuple[str, str]] = {}
    for word, emotion in forms:
        folded = fold(word.removesuffix("*")).strip()
        if not folded:
            raise DataError(f"{folder}, step {WORDS!r}: found {word!r} for {emotion}. Expected a word with letters.")
        other, owner = owners.setdefault(folded, (word, emotion))
        if owner != emotion:
            raise DataError(
                f"{folder}, step {WORDS!r}: {word!r} for {emotion} and {other!r} for {owner} are alike once case and "
                "accents are set aside, as replies are read. Choose another word for one of them."
            )
    options = scenes.state.config.options["separator"].join(words[emotion] for emotion in EMOTIONS)
    ending = f"[{words['options']}]: {options}\n{words['closing']}"
    slots = "[{0}]: {{narrative}}\n[{1}]: {{question}}", "[{1}]: {{narrative}}\n{{question}}"
    text, image = (slot.format(words["narrative"], words["question"]) for slot in slots)
    prompts = {
        "text": f"{words['text_instruction']}\n\n{text}\n\n{ending}",
        "multimodal": f"{words['image_instruction']}\n\n{image}\n\n{ending}",
    }
    return {"words": {emotion: words[emotion] for emotion in EMOTIONS}, "forms": dict(forms), "prompts": prompts}


def _unchanged(scenes: Scenes) -> tuple[int, int, Sequence[str]]:
    """Returns how many scenes that are built were drafted by a model, how many nobody changed, and the models."""
    built = [scene.row for scene in scenes.all if scene.row not in scenes.dropped]
    drafted = {row: found for row in built if (found := scenes.drafts_of(row))}
    same = sum(scenes.texts[row] in [told for _, told in found] for row, found in drafted.items())
    return len(drafted), same, sorted({model for found in drafted.values() for model, _ in found})


def _counts(scenes: Scenes, tables: Mapping[str, Sequence[Any]]) -> Mapping[str, int]:
    state = scenes.state
    labels = {step: sum(len(scenes.labels(step, row)) for row in scenes.texts) for step in (LABEL, SECOND)}
    drafted, unchanged, _ = _unchanged(scenes)
    further = sum(len(scenes.labels(LABEL, row)) > state.config.options["labels"] for row in scenes.texts)
    return {
        "scenes to begin with": len(scenes.all),
        "scenes that people labelled": sum(bool(scenes.labels(LABEL, row)) for row in scenes.texts),
        "labels": labels[LABEL],
        "scenes that needed further labels": further,
        "second labels": labels[SECOND],
        "scenes with a minority label": sum(row["minority"] is not None for rows in tables.values() for row in rows),
        "scenes drafted by a model": drafted,
        "drafts that nobody changed": unchanged,
        "scenes built": sum(map(len, tables.values())),
    }


def _marks(scenes: Scenes, figures: Sequence[Figure]) -> Iterator[str]:
    options, folder = scenes.state.config.options, scenes.state.folder
    drafted, unchanged, models = _unchanged(scenes)
    if drafted and unchanged / drafted > options["most_unchanged"]:
        raise DataError(
            f"{folder}: {unchanged} of {drafted} texts are as a model drafted them. Expected a share of "
            f"{options['most_unchanged']:g} at most ('most_unchanged' in [options] of culture.toml). Rewrite some."
        )
    if unchanged:
        yield f"{unchanged} of {drafted} texts are drafts of a model ({', '.join(models)}) that nobody changed."
    elif drafted:
        yield f"{drafted} texts were drafted by a model ({', '.join(models)}) and rewritten by people."
    for figure in figures:
        if figure.floor is not None and figure.missing:
            yield f"How well other people agree with its labels ({figure.of}) isn't known: {figure.missing}."
    if models := scenes.selecting_models:
        yield f"Its scenes were filtered by the emotions that models chose ({', '.join(models)})."
    if near := scenes.near_published():
        yield f"{near} scenes are much like published ones."
    if scenes.is_new and not scenes.published_texts:
        yield "Its scenes weren't compared with CEDAR's, which weren't at hand."
    if scenes.is_new and not scenes.contrast:
        yield "Its scenes are labelled by one culture alone, so it isn't known whether cultures differ on them."
