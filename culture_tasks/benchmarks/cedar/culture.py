"""How a group adds to CEDAR: its language, in which it tells and labels the scenes that there are, or new scenes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from culture_tasks.benchmarks.cedar.culture_work import LANGUAGE, CedarWork, language_name, values_of
from culture_tasks.benchmarks.cedar.labels import EMOTIONS
from culture_tasks.benchmarks.cedar.scenes import NEW_SCENES, ORIGINAL, SENTENCE, SceneText, published_images
from culture_tasks.benchmarks.culture_forms import Ask, Config, CultureForm, State, Step
from culture_tasks.benchmarks.culture_rows import ask_by, json_object
from culture_tasks.benchmarks.interface import Decoding
from culture_tasks.prompt_files import load as load_prompt


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
            prompt, slots = load_prompt(__package__, "translate.v1"), {"language": language_name(config.language)}
            ask = ask_by(prompt, texts, Decoding(max_tokens=512), labels, values=slots)
            yield step("translate", CedarWork.tell_rows, ask=ask, by_people=True)
        yield step("check", CedarWork.check_rows, text=f"check_{config.way}")
        yield step("label", CedarWork.label_rows, labels=_emotion_words)
        yield step("second", partial(CedarWork.label_rows, again=True), labels=_emotion_words)

    def images(self, state: State) -> Mapping[str, Path]:
        """Returns the images of the published scenes."""
        return published_images(state)


FORM = CedarForm()


def _emotion_words(state: State) -> Mapping[str, str]:
    return {name: word for name, word in CedarWork(state).words.items() if name in EMOTIONS}


# What models are asked, and how their replies are read


_LABELS = {"narrative": "Narrative", "question": "Question", "sentence_form": SENTENCE, "language": LANGUAGE}
_LABELS |= {f"refined_{name}": _LABELS[name] for name in ("narrative", "question")}


def _ask(name: str, read: Callable[[str], Mapping[str, Any]], *, shows_image: bool = False) -> Ask:
    return ask_by(load_prompt(__package__, name), read, Decoding(max_tokens=512), _LABELS, shows_image=shows_image)


def _read_texts(keys: tuple[str, str], reply: str) -> Mapping[str, str]:
    """Returns the narrative and the question of a reply in JSON, by its keys; an empty one is left out."""
    content = json_object(reply)
    texts = [content.get(key) for key in keys]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"expected JSON with the texts {' and '.join(keys)}")
    return values_of(SceneText(*(str(text).strip() for text in texts)))


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
