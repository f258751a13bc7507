"""What people and models do, step by step, to add a language or scenes to CEDAR.

Their instructions, and the places of the paper, are in ``culture_texts.toml``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast

from culture_tasks.benchmarks.cedar.labels import EMOTIONS, OPTION_WORDS, Language
from culture_tasks.benchmarks.cedar.scenes import (
    NEW_SCENES,
    ORIGINAL,
    PIECES,
    SENTENCE,
    Told,
    contrast_languages,
    scenes_of,
    to_label_again,
    words_of,
)
from culture_tasks.benchmarks.culture_rows import json_object
from culture_tasks.benchmarks.cultures import Ask, Config, CultureForm, SheetRow, State, Step
from culture_tasks.benchmarks.interface import Decoding, Picture, Prompt
from culture_tasks.errors import DataError
from culture_tasks.prompt_files import load as load_prompt

_NARRATIVE, _QUESTION, _LANGUAGE = "Narrative", "Question", "Language"


def steps_of(form: CultureForm, config: Config) -> Iterator[Step]:
    """Yields the steps of a way, in order."""
    step = partial(form.step, config, choices={"emotion": dict(zip(EMOTIONS, EMOTIONS, strict=True))})
    yield step("words", _words)
    yield step("words_back", _words_back)
    texts = partial(_read_texts, ("narrative", "question"))
    if config.way == NEW_SCENES:
        # Drafts of sentences by models (section 2.3)
        yield step("draft", _sentences, ask=_ask("scene.v1", texts))
        refined = partial(_read_texts, ("refined_narrative", "refined_question"))
        yield step("second_person", partial(_drafted, "draft"), ask=_ask("second_person.v1", refined))
        ask = _ask("no_emotion_words.v1", _read_without_emotions)
        yield step("no_emotion_words", partial(_drafted, "second_person"), ask=ask)
        yield step("write", _to_tell)
        # Filters by models, and alignment with images (sections 2.3 and 2.4)
        for name, outcomes in (("social", ("not social-related", "social-related")), ("safe", ("unsafe", "safe"))):
            yield step(name, _told, ask=_ask(f"{name}.v1", partial(_read_outcome, outcomes)))
        yield step("provisional", _in_each_language, ask=_ask("provisional.v1", _read_emotion))
        rewritten = partial(_read_texts, ("rewritten_narrative", "rewritten_question"))
        yield step("align", _with_image, ask=_ask("align.v1", rewritten, shows_image=True))
        for name in ("with_image", "without_image"):
            ask = _ask(f"{name}.v1", _read_emotion, shows_image=name == "with_image")
            yield step(name, _with_image, ask=ask)
    else:
        ask = _ask("translate.v1", texts, language=_name_of(config.language))
        yield step("translate", _to_tell, ask=ask, by_people=True)
    yield step("check", _to_check, text=f"check_{config.way}")
    yield step("label", _to_label, labels=_emotion_words)
    yield step("second", partial(_to_label, again=True), labels=_emotion_words)


# The rows of people's steps


def _shown(told: Told) -> dict[str, str]:
    return {label: text for label, text in zip((_NARRATIVE, _QUESTION), told, strict=True) if text}


def _values(told: Told | None) -> dict[str, str]:
    return {name: text for name, text in told._asdict().items() if text} if told else {}


def _words(state: State) -> list[SheetRow]:
    known: Mapping[Any, str] = OPTION_WORDS.get(cast("Language", state.config.language), {})
    english: Mapping[str, str] = {**dict(zip(EMOTIONS, EMOTIONS, strict=True)), **PIECES}
    values = {name: {"translation": known[name]} if name in known else {} for name in english}
    return [
        SheetRow(name=name, shown={"English": english[name]}, values=values[name], group="words") for name in english
    ]


def _words_back(state: State) -> list[SheetRow]:
    def row(name: str, word: str) -> SheetRow:
        translator = frozenset({state.of("words", name)[-1].person})
        return SheetRow(name=name, shown={"Translation": word}, group="words_back", not_for=translator)

    return [row(*each) for each in words_of(state).items()]


def _to_tell(state: State) -> list[SheetRow]:
    """Returns the scenes to write or to translate; one that two people skipped, or its writer, is given to nobody."""
    return [
        SheetRow(
            name=scene.row,
            shown=scene.shown,
            image=scene.image,
            writer=scene.writer,
            values=_values([scene.translation, *(told for _, told in scene.drafts())][-1]),
            people=1 if len(state.skipped(scene.step, scene.row)) < (1 if scene.writer else 2) else 0,
        )
        for scene in scenes_of(state)
    ]


def _to_check(state: State) -> list[SheetRow]:
    is_new = state.config.way == NEW_SCENES
    return [
        SheetRow(
            name=scene.row,
            shown={} if is_new else scene.shown,
            image=scene.image,
            values=_values(scene.told),
            not_for=frozenset({state.of(scene.step, scene.row)[-1].person}),
        )
        for scene in scenes_of(state)
        if scene.told and not scene.why_filtered
    ]


def _to_label(state: State, *, again: bool = False) -> list[SheetRow]:
    """Returns the scenes to label, for people who gave no labels in the other of the two steps, or had a part before.

    Nobody can choose among words that aren't all there.
    """
    if not words_of(state).keys() >= set(EMOTIONS):
        return []
    steps = [step for step in state.entries if (step == "second") != again]
    entries = [entry for step in steps for found in state.entries[step].values() for entry in found]
    not_for = frozenset(entry.person for entry in entries if not entry.by_model)
    return [
        SheetRow(
            name=scene.row,
            shown=_shown(scene.text),
            image=scene.image,
            not_for=not_for,
            people=2 if again else scene.decision.people,
        )
        for scene in (to_label_again(state) if again else scenes_of(state))
        if not scene.why_unlabelled
    ]


def _emotion_words(state: State) -> Mapping[str, str]:
    return {name: word for name, word in words_of(state).items() if name in EMOTIONS}


# The rows of models' steps


def _sentences(state: State) -> list[SheetRow]:
    return [SheetRow(name=scene.row, shown=scene.shown) for scene in scenes_of(state) if SENTENCE in scene.shown]


def _drafted(step: str, state: State) -> list[SheetRow]:
    """Returns the rows of the sentences that a model has filled in at a step, as they stand then."""
    scenes = [scene for scene in scenes_of(state) if state.by_models(step, scene.row)]
    return [SheetRow(name=scene.row, shown=_shown(scene.drafts(until=step)[-1][1])) for scene in scenes]


def _told(state: State) -> list[SheetRow]:
    scenes = [(scene, scene.told) for scene in scenes_of(state)]
    return [SheetRow(name=scene.row, shown=_shown(told), image=scene.image) for scene, told in scenes if told]


def _with_image(state: State) -> list[SheetRow]:
    return [row for row in _told(state) if row.image]


def _in_each_language(state: State) -> list[SheetRow]:
    languages = contrast_languages(state.config)
    return [
        replace(row, name=f"{row.name}-{code}", shown={**row.shown, _LANGUAGE: _name_of(code)}, group=row.name)
        for row in _told(state)
        for code in (languages if len(languages) > 1 and not row.image else ())
    ]


def _name_of(code: str) -> str:
    from culture_tasks.vocabulary import language

    try:
        return language(code).name
    except KeyError:
        raise DataError(f"culture.toml: no language {code!r}. Expected a code of ISO 639, such as 'am'.") from None


# What models are asked, and how their replies are read


def _ask(
    prompt_file: str, read: Callable[[str], Mapping[str, Any]], *, language: str = "", shows_image: bool = False
) -> Ask:
    """Returns how a model is asked with a prompt file whose slots are filled with what a row shows."""

    def prompt(row: SheetRow) -> Prompt:
        narrative, question = (row.shown.get(label, row.shown.get(ORIGINAL[label], "")) for label in ORIGINAL)
        values = {"narrative": narrative, "question": question, "sentence_form": row.shown.get(SENTENCE, "")}
        values |= {"refined_narrative": narrative, "refined_question": question}
        values["language"] = row.shown.get(_LANGUAGE, language)
        text = load_prompt(__package__, prompt_file).fill(values)
        return Prompt((Picture(), text) if shows_image else (text,))

    return Ask(prompt=prompt, read=read, decoding=Decoding(max_tokens=512), version=prompt_file)


def _read_texts(keys: tuple[str, str], reply: str) -> Mapping[str, str]:
    """Returns the narrative and the question of a reply in JSON, by its keys; an empty one is left out."""
    content = json_object(reply)
    found = [content.get(key) for key in keys]
    if not all(isinstance(text, str) for text in found):
        raise ValueError(f"expected JSON with the texts {' and '.join(keys)}")
    return _values(Told(*(str(text).strip() for text in found)))


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
