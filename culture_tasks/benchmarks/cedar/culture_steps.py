"""What people and models do, step by step, to add a language or scenes to CEDAR."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from culture_tasks.benchmarks.cedar.labels import EMOTIONS, OPTION_WORDS, Language
from culture_tasks.benchmarks.cedar.scenes import (
    ALIGN,
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
    WORDS_BACK,
    WRITE,
    Scene,
    Scenes,
    Told,
)
from culture_tasks.benchmarks.cultures import Ask, Column, Config, Row, State, Step
from culture_tasks.benchmarks.interface import Decoding, Picture, Prompt
from culture_tasks.errors import DataError
from culture_tasks.prompt_files import load as load_prompt

_NATIVE = "native speakers of the language who live in the culture, or lived there for years"
_OTHERS = "native speakers with no other part in making the data: enter them with this step alone"
_RATING = "1 is worst, 10 is best"
_NARRATIVE, _QUESTION = "Narrative", "Question"
_ORIGINAL = {_NARRATIVE: "Original narrative", _QUESTION: "Original question"}
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


def steps_of(config: Config) -> Sequence[Step]:
    """Returns the steps of a way, in order."""
    telling = _steps_of_new_scenes(config) if config.way == NEW_SCENES else [_translate(config)]
    return (*_words(config), *telling, _check(config), *_labelling())


# The steps of both ways


def _words(config: Config) -> Sequence[Step]:
    translation = Column(name="translation", title="Translation", about="No braces.")
    back = Column(name="english", title="English")
    known: Mapping[Any, str] = OPTION_WORDS.get(cast("Language", config.language), {})
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
            "dictionary has first. Keep the square brackets in the last part.",
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


def _shown(scene: Scene, *, original: bool = False) -> dict[str, str]:
    names = _ORIGINAL if original else {name: name for name in (_NARRATIVE, _QUESTION)}
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
                shown=_shown(scene, original=True),
                image=scene.image,
                values=_values(scenes.drafts.get(scene.row)),
            )
            for scene in scenes.all
        ]

    def language() -> Mapping[str, str]:
        return {"language": _name_of(config.language)}

    slots = {"narrative": _ORIGINAL[_NARRATIVE], "question": _ORIGINAL[_QUESTION]}
    return Step(
        name=TRANSLATE,
        title="Translation",
        about="Tell the scene and its question in your language, as people would say it. Keep every event and detail; "
        "name no emotion that the original doesn't name. Choose the form of address that suits the situation, and "
        "your own words for relatives and titles. Leave the narrative empty where there is none. Skip a scene that "
        "can't happen in your culture. Where a draft is there, rewrite it, or confirm it if it is as you would say it.",
        who=_NATIVE,
        source="CEDAR, section 2.5: by GPT-4.5, verified by native speakers; its prompt isn't printed",
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
            rating(name="fidelity", title="Fidelity", about=f"Are all details of the original kept? {_RATING}."),
        ]
    )

    texts = (replace(column, required=False) for column in (_narrative(config) if is_new else _TEXTS[0], _TEXTS[1]))

    def rows(state: State) -> list[Row]:
        scenes = Scenes(state)
        return [
            Row(
                name=scene.row,
                shown={} if is_new else _shown(scene, original=True),
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
        source="CEDAR, section 2.3: 100 were looked at by people" if is_new else "CEDAR, section 2.5 and appendix A.4",
        columns=(Column(name="possible", title="Possible in the culture", kind="yes_no"), *quality, *texts),
        rows=rows,
    )


def _labelling() -> Sequence[Step]:
    def rows(state: State, *, second: bool) -> list[Row]:
        scenes = Scenes(state)
        if not scenes.has_words:
            return []
        not_for = scenes.people(second=not second)
        return [
            Row(
                name=scene.row,
                shown=_shown(scene._replace(**scenes.texts[scene.row]._asdict())),
                image=scene.image,
                not_for=not_for,
                people=2 if second else scenes.decisions[scene.row].people,
            )
            for scene in scenes.all
            if scene.row in scenes.texts and (not second or scene.row in scenes.second_draw)
        ]

    about = (
        "Read the scene, look at its image where it has one, and choose the one emotion that best matches the "
        "situation. There is no right answer but what people of your culture would feel. Skip a scene that you would "
        "rather not judge; you needn't say why."
    )
    return (
        Step(
            name=LABEL,
            title="Labels",
            about=about,
            who=_NATIVE,
            source="CEDAR, section 2.5: at least five, and two more without a majority",
            columns=(_EMOTION,),
            rows=partial(rows, second=False),
            labels=_in_words,
        ),
        Step(
            name=SECOND,
            title="Second labels",
            about=about,
            who=_OTHERS,
            source="CEDAR, appendix A.5: two people",
            columns=(_EMOTION,),
            rows=partial(rows, second=True),
            labels=_in_words,
        ),
    )


def _in_words(state: State) -> Mapping[str, str]:
    words = Scenes(state).words
    return {emotion: words[emotion] for emotion in EMOTIONS if emotion in words}


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
        about="Optional: a model makes a narrative and a question of each sentence.",
        source="CEDAR, section 2.3, by GPT-4.5; Appendix D",
        columns=_TEXTS,
        rows=lambda state: [
            Row(name=name, shown={_SENTENCE: one.sentence}) for name, one in Scenes(state).seeds.items()
        ],
        ask=_ask("scene.v1", seed, partial(_json_reply, narrative="narrative", question="question")),
    )
    yield model(
        name=SECOND_PERSON,
        title="Drafts in the second person",
        about="Optional: a model rewrites the drafts, so that the main character is 'you'.",
        source="CEDAR, section 2.3, by Llama3.3-70B; Appendix D",
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
        about="Optional: a model takes out of the narratives what says what anybody feels.",
        source="CEDAR, section 2.3, by Llama3.3-70B; Appendix D",
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
        source="CEDAR, sections 2.2 to 2.4: by models, from sentences of other data sets",
        columns=(
            _narrative(config),
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
            about=f"Optional: a model reads what was written. Scenes that aren't {name} are dropped.",
            source=f"CEDAR, {source}; Appendix D",
            columns=keep,
            rows=_written,
            ask=_ask(prompt, texts, partial(_one_of, outcomes)),
        )
    yield model(
        name=PROVISIONAL,
        title="Provisional labels",
        about="Optional: three models choose an emotion as speakers of each language. Scenes on which they all differ, "
        "or which have the same provisional label in all languages, are dropped. The labels serve for nothing else.",
        source="CEDAR, section 2.3, by Claude4.5-Sonnet, Gemini2.5-Flash and GPT-4.5; Appendix D",
        columns=(_EMOTION,),
        rows=_in_each_language,
        ask=_ask("provisional.v1", {**texts, "language": "Language"}, _emotion),
    )
    yield model(
        name=ALIGN,
        title="Texts aligned with their images",
        about="Optional: a model leaves in the text what the image doesn't show. People find it in place of what was "
        "written, to be checked and corrected.",
        source="CEDAR, section 2.4, by GPT-4.5; Appendix D",
        columns=_TEXTS,
        rows=lambda state: [row for row in _written(state) if row.image],
        ask=_ask(
            "align.v1",
            texts,
            partial(_json_reply, narrative="rewritten_narrative", question="rewritten_question"),
            with_image=True,
        ),
    )
    for name, title, prompt in (
        (WITH_IMAGE, "Labels with image", "with_image.v1"),
        (WITHOUT_IMAGE, "Labels without image", "without_image.v1"),
    ):
        yield model(
            name=name,
            title=title,
            about="Optional: a model chooses an emotion with the image and without it. Where it is the same, the scene "
            "is dropped.",
            source="CEDAR, section 2.4, by GPT-4.5; Appendix D",
            columns=(_EMOTION,),
            rows=_to_look_at,
            ask=_ask(prompt, texts, _emotion, with_image=name == WITH_IMAGE),
        )


def _narrative(config: Config) -> Column:
    shortest, longest = config.options["shortest"], config.options["longest"]
    about = f"{shortest} to {longest} characters; shorter with an image."
    return replace(_TEXTS[0], most=longest, about=about)


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


def _to_look_at(state: State) -> list[Row]:
    """Returns the scenes with an image, as people check them."""
    scenes = Scenes(state)
    texts = {scene.row: scene._replace(**scenes.told[scene.row]._asdict()) for scene in scenes.all if scene.image}
    return [Row(name=row, shown=_shown(scene), image=scene.image) for row, scene in texts.items()]


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
