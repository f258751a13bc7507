"""How a group adds to CEDAR: its language, in which it tells and labels the scenes that there are, or new scenes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

from culture_tasks.benchmarks.cedar.documents import english_label
from culture_tasks.benchmarks.cedar.labels import EMOTIONS, LANGUAGES, MODALITIES, OPTION_WORDS, Emotion
from culture_tasks.benchmarks.cedar.scenes import (
    CHECK,
    DRAFT,
    LABEL,
    NEW_SCENES,
    NO_EMOTION_WORDS,
    PIECES,
    PROVISIONAL,
    SAFE,
    SECOND,
    SECOND_PERSON,
    SOCIAL,
    TRANSLATE,
    WITH_IMAGE,
    WITHOUT_IMAGE,
    WORDS,
    WRITE,
    Scene,
    Scenes,
    Told,
)
from culture_tasks.benchmarks.cultures import (
    Ask,
    Built,
    Column,
    Config,
    CultureForm,
    Figure,
    Option,
    Row,
    State,
    Step,
)
from culture_tasks.benchmarks.interface import Decoding, Picture, Prompt
from culture_tasks.errors import DataError
from culture_tasks.prompt_files import load as load_prompt

WORDS_BACK = "words_back"

FEWEST = 10
"""Scenes from which a figure is computed: fewer say nothing of the people, whatever the number is."""

_NATIVE = "native speakers of the language who live in the culture, or lived there for years"
_OTHERS = "native speakers who have no other part in making the data"
_RATING = "1 is worst, 10 is best"
_NARRATIVE, _QUESTION = "Narrative", "Question"
_IN_ENGLISH = {name: f"{name} in English" for name in (_NARRATIVE, _QUESTION)}
_SENTENCE = "Sentence"
_EMOTION = Column(
    name="emotion",
    title="Emotion",
    kind="choice",
    about="The one emotion that best matches the situation.",
    choices={emotion: emotion for emotion in EMOTIONS},
)
_TEXTS = (
    Column(name="narrative", title=_NARRATIVE, kind="long_text", required=False),
    Column(name="question", title=_QUESTION, kind="long_text"),
)
_PRINTED = {  # lowest and highest of the seven languages in Table 2: alpha, mean pairwise F1
    "multimodal": ("0.693 to 0.773", "0.577 to 0.715"),
    "text": ("0.792 to 0.931", "0.650 to 0.810"),
}


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
        "are "
        "public. The paper says nothing of its annotators but that they are native speakers: say in the data card "
        "where "
        "yours live, how they were paid and what they agreed to."
    )

    def options(self, way: str) -> Sequence[Option]:
        """Returns what a group decides beforehand."""
        return (*_OPTIONS, *(_OPTIONS_OF_NEW_SCENES if way == NEW_SCENES else _OPTIONS_OF_A_LANGUAGE))

    def steps(self, config: Config) -> Sequence[Step]:
        """Returns the steps, in order."""
        telling = _steps_of_new_scenes(config) if config.way == NEW_SCENES else [_translate(config)]
        return (*_words(config), *telling, _check(config), *_labelling())

    def images(self, state: State) -> Mapping[str, Any]:
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
        return list(_figures(Scenes(state)))

    def build(self, state: State) -> Built:
        """Returns the tables of the culture, as CEDAR has them, and the prompts in its language."""
        scenes = Scenes(state)
        facts = _facts(scenes)
        tables, images = _tables(scenes)
        if not tables:
            raise DataError(f"{state.folder}: no scene has a gold label. `culture-tasks culture agree` says why.")
        figures = list(_figures(scenes))
        for figure in figures:
            if figure.passes is False:
                raise DataError(
                    f"{state.folder}: {figure.name}, {figure.of}: {figure.value:.2f}. Expected {figure.floor:g} at "
                    f"least. "
                    "Look for scenes and people that stand out, or set another floor in [options] of culture.toml."
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
        about="Which label is gold? 'majority': more than half of all labels, else the scene is dropped. "
        "'plurality': the "
        "most frequent one. 'majority_then_plurality': more than half, and after the further labels the most frequent "
        "one. Ties are dropped. The paper says majority, and not what happens to scenes that have none after seven "
        "labels; since each of its scenes has a label in each language, the default takes the most frequent one.",
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
        about="How many scenes with an image are labelled again by two people who had no part in the data? The "
        "paper: 70.",
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
        "where "
        "more than half are unchanged, nobody may have read them.",
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
        "have "
        "lists of inflected forms in this package; another language has what you give.",
    ),
)

_OPTIONS_OF_A_LANGUAGE = (
    Option(
        name="most_scenes",
        default=0,
        about="At most so many scenes with an image, and as many without, drawn by the seed; 0 takes all. The paper: "
        "400 "
        "and 1,166. About 200 are needed for an accuracy, 400 for biases.",
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
        about="Codes of languages as whose speakers models give provisional labels, besides your own: scenes with "
        "the same "
        "one in all are dropped. The paper has seven. Without any, models give none.",
    ),
    Option(
        name="same_label",
        default="keep",
        choices=("keep", "drop"),
        about="What happens to a scene whose gold label is the same in the cultures of inputs/contrast*.json? The "
        "paper "
        "filters by provisional labels alone, and doesn't say that it drops any scene later.",
    ),
)


# The steps of both ways


def _words(config: Config) -> Sequence[Step]:
    translation = Column(name="translation", title="Translation", about="No braces.")
    back = Column(name="english", title="English")
    known: Mapping[Any, str] = OPTION_WORDS[known_language] if (known_language := _known(config)) else {}
    source = "CEDAR, Figures 9 and 10; who translated the paper's isn't said"

    def rows(_: State) -> list[Row]:
        return [
            Row(
                name=name,
                shown={"English": text},
                values={"translation": known[name]} if name in known else {},
                group=WORDS,
            )
            for name, text in (*zip(EMOTIONS, EMOTIONS, strict=True), *PIECES.items())
        ]

    def rows_back(state: State) -> list[Row]:
        found = {name: state.of(WORDS, name) for name in (*EMOTIONS, *PIECES)}
        return [
            Row(
                name=name,
                shown={"Translation": str(entries[-1].values["translation"])},
                group=WORDS_BACK,
                not_for=frozenset({entries[-1].person}),
            )
            for name, entries in found.items()
            if entries
        ]

    return (
        Step(
            name=WORDS,
            title="Words for emotions and the instruction",
            about="Translate the 14 words for emotions and the parts of the instruction that models are given. Each "
            "emotion needs a word that no other has, as a noun that stands alone in a list. Words don't match one to "
            "one between languages: choose the word that people would use for the situation, not the one that a "
            "dictionary has first.",
            who=_NATIVE,
            source=source,
            columns=(translation,),
            rows=rows,
        ),
        Step(
            name=WORDS_BACK,
            title="Words translated back",
            about="Translate each of these into English, without asking anybody for the original. Where a word for an "
            "emotion comes back as another one, talk about it with the first translator, who may change it.",
            who="another native speaker than the first translator",
            source="not in the paper",
            columns=(back,),
            rows=rows_back,
        ),
    )


def _known(config: Config) -> Any:
    return config.language if config.language in LANGUAGES else None


def _shown(scene: Scene, *, english: bool = False) -> dict[str, str]:
    names = _IN_ENGLISH if english else {name: name for name in (_NARRATIVE, _QUESTION)}
    texts = {names[_NARRATIVE]: scene.narrative, names[_QUESTION]: scene.question}
    return {name: text for name, text in texts.items() if text.strip()}


def _values(told: Told | None) -> dict[str, str]:
    return {} if told is None else {name: text for name, text in told._asdict().items() if text}


def _translate(config: Config) -> Step:
    def rows(state: State) -> list[Row]:
        scenes = Scenes(state)
        return [
            Row(
                name=scene.row,
                shown=_shown(scene, english=True),
                image=scene.image,
                values=_values(scenes.drafts.get(scene.row)),
            )
            for scene in scenes.all
        ]

    def language() -> Mapping[str, str]:
        return {"language": _name_of(config.language)}

    slots = {"narrative": _IN_ENGLISH[_NARRATIVE], "question": _IN_ENGLISH[_QUESTION]}
    return Step(
        name=TRANSLATE,
        title="Translation",
        about="Tell the scene and its question in your language, as people would say it. Keep every event and detail; "
        "name no emotion that the English text doesn't name. Choose the form of address that suits the situation, and "
        "your own words for relatives and titles. Leave the narrative empty where there is none. Skip a scene that "
        "can't happen in your culture. Where a draft is there, rewrite it, or confirm it if it is as you would say it.",
        who=_NATIVE,
        source="section 2.5: by GPT-4.5, verified by native speakers; its prompt isn't printed",
        columns=_TEXTS,
        rows=rows,
        ask=_ask(
            "translate.v1", slots, partial(_json_reply, narrative="narrative", question="question"), more=language
        ),
    )


def _check(config: Config) -> Step:
    is_new = config.way == NEW_SCENES
    possible = ("possible", True)
    rating = partial(Column, kind="number", lowest=1, highest=10, only_if=possible)
    quality = (
        [Column(name="clean", title="Nothing in it says what anybody feels", kind="yes_no", only_if=possible)]
        if is_new
        else [
            rating(name="fluency", title="Fluency", about=f"Is it correct and natural? {_RATING}."),
            rating(name="fidelity", title="Fidelity", about=f"Are all details of the English text kept? {_RATING}."),
        ]
    )

    def rows(state: State) -> list[Row]:
        scenes = Scenes(state)
        return [
            Row(
                name=scene.row,
                shown={} if is_new else _shown(scene, english=True),
                image=scene.image,
                values=_values(scenes.told[scene.row]),
                not_for=frozenset({scenes.tellers[scene.row]}),
            )
            for scene in scenes.all
            if scene.row in scenes.told and not scenes.filtered(scene)
        ]

    return Step(
        name=CHECK,
        title="Check",
        about="Read what another person has written, and correct it where it can be said better. "
        + (
            "Say whether it could happen in your culture and harms nobody, and whether it leaves open what anybody "
            "feels: no word for an emotion, and none that gives it away."
            if is_new
            else "Rate the text as you found it, before your corrections. Say where a scene can't happen in your "
            "culture."
        ),
        who="another native speaker than the one who wrote it",
        source="section 2.3: 100 were looked at by people" if is_new else "section 2.5 and appendix A.4",
        columns=(Column(name="possible", title="Possible in the culture", kind="yes_no"), *quality, *_optional(_TEXTS)),
        rows=rows,
    )


def _optional(columns: Sequence[Column]) -> Iterator[Column]:
    return (replace(column, required=False) for column in columns)


def _labelling() -> Sequence[Step]:
    def rows(state: State, *, second: bool) -> list[Row]:
        scenes = Scenes(state)
        if not scenes.has_words:
            return []
        words: Mapping[str, Mapping[str, str]] = {"emotion": {emotion: scenes.words[emotion] for emotion in EMOTIONS}}
        not_for = scenes.people(second=not second)
        return [
            Row(
                name=scene.row,
                shown=_shown(scene._replace(**scenes.texts[scene.row]._asdict())),
                image=scene.image,
                labels=words,
                not_for=not_for,
                people=2 if second else scenes.decisions[scene.row].people,
            )
            for scene in scenes.all
            if scene.row in scenes.texts and (not second or scene.row in scenes.second_draw)
        ]

    about = (
        "Read the scene, look at its image where it has one, and choose the one emotion that best matches the "
        "situation. "
        "There is no right answer but what people of your culture would feel. Skip a scene that you would rather not "
        "judge; you needn't say why."
    )
    return (
        Step(
            name=LABEL,
            title="Labels",
            about=about,
            who=_NATIVE,
            source="section 2.5: at least five, and two more without a majority",
            columns=(_EMOTION,),
            rows=partial(rows, second=False),
        ),
        Step(
            name=SECOND,
            title="Second labels",
            about=about,
            who=_OTHERS,
            source="appendix A.5: two people",
            columns=(_EMOTION,),
            rows=partial(rows, second=True),
        ),
    )


# The steps of new scenes


def _steps_of_new_scenes(config: Config) -> Iterator[Step]:
    seed = {"sentence_form": _SENTENCE}
    texts = {"narrative": _NARRATIVE, "question": _QUESTION}
    refined = {f"refined_{slot}": label for slot, label in texts.items()}
    model = partial(Step, who="a model; optional", by_people=False)
    keep = (Column(name="keep", title="Kept", kind="yes_no"),)
    yield model(
        name=DRAFT,
        title="Drafts",
        about="A model makes a narrative and a question of each sentence.",
        source="section 2.3, by GPT-4.5; Appendix D",
        columns=_TEXTS,
        rows=lambda state: [
            Row(name=name, shown={_SENTENCE: one.sentence}) for name, one in Scenes(state).seeds.items()
        ],
        ask=_ask("scene.v1", seed, partial(_json_reply, narrative="narrative", question="question")),
    )
    yield model(
        name=SECOND_PERSON,
        title="Drafts in the second person",
        about="A model rewrites the drafts, so that the main character is 'you'.",
        source="section 2.3, by Llama3.3-70B; Appendix D",
        columns=_TEXTS,
        rows=lambda state: _drafted(state, DRAFT),
        ask=_ask(
            "second_person.v1",
            texts,
            partial(_json_reply, narrative="refined_narrative", question="refined_question"),
        ),
    )
    yield model(
        name=NO_EMOTION_WORDS,
        title="Drafts without emotions",
        about="A model takes out of the narratives what says what anybody feels.",
        source="section 2.3, by Llama3.3-70B; Appendix D",
        columns=(
            Column(name="changed", title="Changed", kind="yes_no"),
            Column(name="narrative", title=_NARRATIVE, kind="long_text", only_if=("changed", True)),
        ),
        rows=lambda state: _drafted(state, SECOND_PERSON),
        ask=_ask("no_emotion_words.v1", refined, _without_emotions),
    )
    yield Step(
        name=WRITE,
        title="Scenes",
        about="Write a scene from everyday life in your language: where it happens, what happened before, and what "
        "people do; then a question that asks what somebody feels before, during or after it. Speak to the reader as "
        "'you'. Name no place or nationality, and no emotion. People of other cultures should be able to imagine the "
        "scene, and may feel differently about it. For an image, write only what it doesn't show (who the people are "
        "to each other, what happened before), or nothing, and say in the question where the person in the image is. "
        "Where a draft is there, rewrite it. Leave out real people, children in danger and violence.",
        who=_NATIVE,
        source="sections 2.2 to 2.4: by models, from sentences of other data sets",
        columns=(
            Column(
                name="narrative",
                title=_NARRATIVE,
                kind="long_text",
                required=False,
                most=config.options["longest"],
                about=f"{config.options['shortest']} to {config.options['longest']} characters; shorter with an image.",
            ),
            _TEXTS[1],
        ),
        rows=_rows_to_write,
    )
    for name, title, prompt, outcomes, source in (
        (
            SOCIAL,
            "Social scenes",
            "social.v1",
            ("not social-related", "social-related"),
            "section 2.3, by Llama3.3-70B",
        ),
        (SAFE, "Safe scenes", "safe.v1", ("unsafe", "safe"), "section 2.3, by PolyGuard"),
    ):
        yield model(
            name=name,
            title=title,
            about="A model reads the scenes that were written; the others are dropped.",
            source=f"{source}; Appendix D",
            columns=keep,
            rows=_written,
            ask=_ask(prompt, texts, partial(_one_of, outcomes)),
        )
    yield model(
        name=PROVISIONAL,
        title="Provisional labels",
        about="Three models choose an emotion as speakers of each language. Scenes on which they all differ, or which "
        "have the same provisional label in all languages, are dropped. The labels serve for nothing else.",
        source="section 2.3, by Claude4.5-Sonnet, Gemini2.5-Flash and GPT-4.5; Appendix D",
        columns=(_EMOTION,),
        rows=_in_each_language,
        ask=_ask("provisional.v1", {**texts, "language": "Language"}, _emotion),
    )
    for name, title, prompt in (
        (WITH_IMAGE, "Labels with image", "with_image.v1"),
        (WITHOUT_IMAGE, "Labels without image", "without_image.v1"),
    ):
        yield model(
            name=name,
            title=title,
            about="A model chooses an emotion with the image and without it. Where it is the same, the scene is "
            "dropped.",
            source="section 2.4, by GPT-4.5; Appendix D",
            columns=(_EMOTION,),
            rows=lambda state: [row for row in _written(state) if row.image],
            ask=_ask(prompt, texts, _emotion, with_image=name == WITH_IMAGE),
        )


def _drafted(state: State, step: str) -> list[Row]:
    """Returns the rows of the sentences that a model has filled in at a step, as they stand then."""
    scenes = Scenes(state)
    drafts = {name: scenes.drafts_of(name, until=step) for name in scenes.seeds if state.by_models(step, name)}
    return [Row(name=name, shown=_shown(Scene(name, name, *found[-1][1]))) for name, found in drafts.items()]


def _rows_to_write(state: State) -> list[Row]:
    scenes = Scenes(state)
    return [
        *(
            Row(name=name, shown={_SENTENCE: seed.sentence}, values=_values(scenes.drafts.get(name)))
            for name, seed in scenes.seeds.items()
        ),
        *(Row(name=name, image=image) for name, image in scenes.pictures.items()),
        *(Row(name=name, writer=person) for name, person in scenes.blanks.items()),
    ]


def _written(state: State) -> list[Row]:
    return [Row(name=scene.row, shown=_shown(scene), image=scene.image) for scene in Scenes(state).all]


def _in_each_language(state: State) -> list[Row]:
    scenes = Scenes(state)
    languages = scenes.languages if len(scenes.languages) > 1 else ()
    return [
        Row(name=f"{row.name}-{code}", shown={**row.shown, "Language": _name_of(code)}, group=row.name)
        for row in _written(state)
        if not row.image
        for code in languages
    ]


def _name_of(code: str) -> str:
    from culture_tasks.vocabulary import language

    try:
        return language(code).name
    except KeyError:
        raise DataError(f"culture.toml: no language {code!r}. Expected a code of ISO 639, such as 'am'.") from None


# What models are asked


def _ask(
    name: str,
    slots: Mapping[str, str],
    read: Callable[[str], Mapping[str, Any]],
    *,
    more: Callable[[], Mapping[str, str]] = dict,
    with_image: bool = False,
) -> Ask:
    """Returns how a model is asked with a prompt file whose slots are filled with what a row shows, by label."""

    def prompt(row: Row) -> Prompt:
        values = {slot: row.shown.get(label, "") for slot, label in slots.items()}
        text = load_prompt(__package__, name).fill({**values, **more()})
        return Prompt((Picture(), text) if with_image else (text,))

    return Ask(prompt=prompt, read=read, decoding=Decoding(max_tokens=512), version=name)


def _json_reply(reply: str, **keys: str) -> Mapping[str, Any]:
    """Returns the texts of a reply in JSON, by column, whatever stands around it; an empty one is left out."""
    start, end = reply.find("{"), reply.rfind("}")
    try:
        content = json.loads(reply[start : end + 1], strict=False)
        texts = {column: content[key] for column, key in keys.items()}
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"expected JSON with {' and '.join(keys.values())}") from None
    if not all(isinstance(text, str) for text in texts.values()):
        raise ValueError(f"expected texts as {' and '.join(keys.values())}")
    return {column: text.strip() for column, text in texts.items() if text.strip()}


def _without_emotions(reply: str) -> Mapping[str, Any]:
    same = "no need to modify"
    if reply.strip(" \n\"'.`").casefold() == same:
        return {"changed": False}
    values = _json_reply(reply, narrative="hidden_emotion_narrative")
    if values.get("narrative", "").strip(".").casefold() == same:
        return {"changed": False}
    return {"changed": True, **values}


def _one_of(outcomes: tuple[str, str], reply: str) -> Mapping[str, Any]:
    """Returns whether a reply names the second of two outcomes."""
    text = reply.strip(" \n\"'.`*").casefold()
    if text not in outcomes:
        raise ValueError(f"expected {outcomes[0]!r} or {outcomes[1]!r}")
    return {"keep": text == outcomes[1]}


def _emotion(reply: str) -> Mapping[str, Any]:
    from culture_tasks.benchmarks.cedar.reading.choice import read_reply

    if (emotion := read_reply(reply)) is None:
        raise ValueError("expected one of the 14 emotions")
    return {"emotion": emotion}


# How well people agree


def _figures(scenes: Scenes) -> Iterator[Figure]:
    from culture_tasks.metrics.intervals import mean_interval, proportion_interval

    options = scenes.state.config.options
    for kind in MODALITIES:
        rows = [scene.row for scene in scenes.all if scene.modality == kind and scene.row in scenes.texts]
        if not rows:
            continue
        labels = [found for row in rows if len(found := scenes.labels(LABEL, row)) > 1]
        pairs = [[one == other for one, other in combinations(found, 2)] for found in labels]
        agreeing = mean_interval([sum(each) / len(each) for each in pairs])
        yield _figure("raw agreement of the first labels", kind, agreeing, len(pairs))
        yield _figure("alpha of the first labels", kind, _alpha(labels), len(labels))
        second = [
            (gold, found)
            for row in rows
            if (gold := scenes.decisions[row].gold) and (found := scenes.labels(SECOND, row))
        ]
        alpha, f1 = _PRINTED[kind]
        beside = [[gold, *found] for gold, found in second]
        name, floor = "alpha, second labels and gold", options[f"floor_{kind}"]
        yield _figure(name, kind, _alpha(beside), len(second), printed=alpha, floor=floor)
        yield _figure("mean F1 of second labels against gold", kind, _mean_f1(second), len(second), printed=f1)
    checks = [entry.values for scene in scenes.all for entry in scenes.state.of(CHECK, scene.row)]
    if scenes.is_new:
        clean = [bool(values["clean"]) for values in checks if "clean" in values]
        share = proportion_interval(sum(clean), len(clean))
        yield _figure("share without words for emotions", CHECK, share, len(clean), printed="0.93")
        if scenes.contrast:
            differs = [
                any(other != gold for other in scenes.contrast[scene.id])
                for scene in scenes.all
                if scene.id in scenes.contrast and scene.row in scenes.texts
                if (gold := scenes.decisions[scene.row].gold)
            ]
            share = proportion_interval(sum(differs), len(differs))
            yield _figure("share of scenes on which the cultures differ", "all", share, len(differs))
    else:
        for name, title, printed in (("fluency", "mean fluency", "9.36"), ("fidelity", "mean fidelity", "9.16")):
            ratings = [values[name] for values in checks if name in values]
            yield _figure(title, CHECK, mean_interval(ratings), len(ratings), printed=printed)
    back = [
        str(entry.values["english"]).strip().casefold() == emotion
        for emotion in EMOTIONS
        for entry in scenes.state.of(WORDS_BACK, emotion)
    ]
    share = proportion_interval(sum(back), len(back))
    yield _figure("share of words that come back as the same emotion", WORDS_BACK, share, len(back))


def _figure(name: str, of: str, interval: Any, n: int, *, printed: str = "", floor: float | None = None) -> Figure:
    if n < FEWEST:
        missing = f"{n} of the {FEWEST} that it needs at least"
        return Figure(name, of, float("nan"), n, printed=printed, floor=floor, missing=missing)
    missing = interval.reason or "" if interval.value != interval.value else ""
    return Figure(name, of, interval.value, n, interval.low, interval.high, printed, floor, missing)


def _alpha(labels: Sequence[Sequence[Emotion]]) -> Any:
    """Krippendorff's alpha, nominal, of the labels of each scene, with the interval of a bootstrap over scenes."""
    import numpy as np

    from culture_tasks.metrics.intervals import Interval
    from culture_tasks.metrics.rater_agreement import krippendorff_alpha
    from culture_tasks.metrics.resampling import replicates

    if len(labels) < FEWEST:
        return Interval()
    table = np.full((max(map(len, labels)), len(labels)), np.nan)
    for place, found in enumerate(labels):
        table[: len(found), place] = [EMOTIONS.index(emotion) for emotion in found]
    value = krippendorff_alpha(table, level="nominal")
    if value.value != value.value:
        return value
    draws = replicates(
        lambda places: krippendorff_alpha(table[:, places], level="nominal").value, list(map(str, range(len(labels))))
    )
    defined = draws[np.isfinite(draws)]
    low, high = np.quantile(defined, [0.025, 0.975]).tolist() if defined.size else (np.nan, np.nan)
    return value._replace(low=low, high=high)


def _mean_f1(second: Sequence[tuple[Emotion, Sequence[Emotion]]]) -> Any:
    """Mean over the second labellers, in their order at each scene, of macro F1 against the gold labels."""
    import numpy as np

    from culture_tasks.benchmarks.cedar.metrics import top2_macro_f1
    from culture_tasks.metrics.intervals import Interval
    from culture_tasks.metrics.resampling import replicates

    if len(second) < FEWEST:
        return Interval()
    people = range(max(len(found) for _, found in second))

    def mean(places: Sequence[int]) -> float:
        scores = []
        for one in people:
            pairs = [(gold, found[one]) for gold, found in (second[at] for at in places) if one < len(found)]
            golds, predictions = [gold for gold, _ in pairs], [found for _, found in pairs]
            scores += [top2_macro_f1(predictions, golds, [None] * len(pairs))] if pairs else []
        return float(np.mean(scores))

    draws = replicates(lambda places: mean(places.tolist()), list(map(str, range(len(second)))))
    low, high = np.quantile(draws, [0.025, 0.975]).tolist()
    return Interval(mean(range(len(second))), low, high, n=len(second), clusters=len(second))


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
        other, owner = owners.setdefault(fold(word.removesuffix("*")).strip(), (word, emotion))
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
    labels = Counter({step: sum(len(scenes.labels(step, row)) for row in scenes.texts) for step in (LABEL, SECOND)})
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
    if near := scenes.near_published():
        yield f"{near} scenes are much like published ones."
    if scenes.is_new and not scenes.contrast:
        yield "Its scenes are labelled by one culture alone, so it isn't known whether cultures differ on them."
