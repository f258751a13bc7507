"""The paper's own matcher (its ``exact_match.py``), for the languages whose lemmatiser can be installed from PyPI.

An answer is in a response as a part of it, or if each of its lemmas is among those of the response. ``pip install
'culture-tasks[blend]'`` brings all packages but spaCy's English model, which every language needs for the English
answers, and Java, which Korean needs. The other languages' packages download models, or don't run beside the harnesses.

Two faults of the original change its numbers and are kept. For Arabic, its lemmatiser returns the first word's lemma,
whose characters are then looked for one by one. And an answer without any lemma, such as one that is punctuation
alone, is in every response.
"""

from __future__ import annotations

import logging
import string
import threading
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib import import_module

from culture_tasks import vocabulary
from culture_tasks.errors import CultureTasksError, MissingExtraError

Lemmatiser = Callable[[str], Iterable[str]]

_ACUTE = {ord("\N{COMBINING ACUTE ACCENT}"): None}

_thread, _lemmatisers = ThreadPoolExecutor(max_workers=1, thread_name_prefix="blend"), threading.local()
"""All lemmatisers live and end in one thread: Arabic's holds a database of its thread, and lmms-eval has several."""


def official_match(answer: str, response: str, language: str) -> bool:
    """Whether an answer is in a cleaned response by the paper's rule.

    The answer's case counts where it is looked for as a whole, as in the original; the response is in lower case.
    """
    if any(form in response for form in (answer, answer.replace("-", " "), answer.replace(" ", "-"))):
        return True
    return _lemmas(answer, language) <= _lemmas(response, language)


def require(language: str) -> None:
    """Raises an error that says what to install where the lemmatiser of a language or of English can't be used."""
    for code in dict.fromkeys((language, "en")):
        _thread.submit(_lemmatiser, code).result()


@lru_cache(maxsize=8192)
def _lemmas(text: str, language: str) -> frozenset[str]:
    terms = _thread.submit(lambda: list(_lemmatiser(language)(text))).result()
    return frozenset(
        unicodedata.normalize("NFD", term).translate(_ACUTE).lower() for term in terms if term not in string.punctuation
    )


def _lemmatiser(language: str) -> Lemmatiser:
    """Returns the lemmatiser of a language, made when it is first needed; to be called in its thread."""
    made: dict[str, Lemmatiser] = vars(_lemmatisers)
    if language not in made:
        package, make = _LEMMATISERS[language]
        name = f"blend: the paper's matcher for {vocabulary.language(language).name}"
        try:
            made[language] = make()
        except ImportError:
            raise MissingExtraError(name, package, "blend") from None
        except Exception as error:  # the bridge to Java raises many kinds
            raise CultureTasksError(
                f"{name} can't be started ({error!s:.200}). English needs spaCy's model (python -m spacy download "
                "en_core_web_sm), and Korean a Java runtime that JAVA_HOME names."
            ) from error
    return made[language]


def _arabic() -> Lemmatiser:
    lemmatizer = import_module("qalsadi.lemmatizer").Lemmatizer()
    return lambda text: str(lemmatizer.lemmatize(text))  # a text, which is taken apart into characters


def _english() -> Lemmatiser:
    pipeline = import_module("spacy").load("en_core_web_sm")
    return lambda text: [token.lemma_ for token in pipeline(text)]


def _hausa() -> Lemmatiser:
    stem = import_module("hausastemmer").stem
    return lambda text: [stem(word.strip("-")) for word in text.split()]


def _korean() -> Lemmatiser:
    okt = import_module("konlpy.tag").Okt()
    return lambda text: okt.morphs(" ".join(word for word, kind in okt.pos(text) if kind != "Josa"), stem=True)


def _chinese() -> Lemmatiser:
    jieba = import_module("jieba")
    jieba.setLogLevel(logging.WARNING)
    return jieba.cut  # type: ignore[no-any-return]


_LEMMATISERS: Mapping[str, tuple[str, Callable[[], Lemmatiser]]] = {
    "ar": ("qalsadi", _arabic),
    "as": ("indic-nlp-library", lambda: import_module("indicnlp.tokenize.indic_tokenize").trivial_tokenize),
    "en": ("spacy", _english),
    "ha": ("hausastemmer", _hausa),
    "ko": ("konlpy", _korean),
    "zh": ("jieba", _chinese),
}
"""The package and the lemmatiser of each language."""

OFFICIAL_LANGUAGES = tuple(_LEMMATISERS)  # with the paper's matcher
