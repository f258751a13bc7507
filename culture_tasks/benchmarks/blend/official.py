"""The paper's own matcher (its ``exact_match.py``), for the languages whose lemmatiser can be installed from PyPI.

An answer is in a response as a part of it, or if each of its lemmas is among those of the response. Lemmas and the
packages for them depend on the language: ``pip install 'culture-tasks[blend]'`` brings all packages but spaCy's English
model, which every language needs for the English answers, and Java, which Korean needs.

Not here: Amharic and Spanish (Spark NLP, with Java and models that it downloads), Azerbaijani and Sundanese (code that
is no package), Greek (CLTK's lemmatiser of Ancient Greek, with downloaded models), Indonesian (``nlp-id`` doesn't build
on Python 3.11) and Persian (the paper's ``hazm`` 0.10 asks for NumPy 1.24.3, which the harnesses don't run with; 0.9
gives other lemmas for 117 of the 1,371 words in the Iranian answers).

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
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

from culture_tasks import vocabulary
from culture_tasks.errors import CultureTasksError, MissingExtraError

Lemmatiser = Callable[[str], Iterable[str]]

_ACUTE = {ord("\N{COMBINING ACUTE ACCENT}"): None}


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
        _lemmatiser(code)


_one_at_a_time = threading.Lock()


@lru_cache(maxsize=8192)
def _lemmas(text: str, language: str) -> frozenset[str]:
    with _one_at_a_time:  # lmms-eval scores in several threads
        terms = list(_lemmatiser(language)(text))
    return frozenset(
        unicodedata.normalize("NFD", term).translate(_ACUTE).lower() for term in terms if term not in string.punctuation
    )


@cache
def _lemmatiser(language: str) -> Lemmatiser:
    return _LEMMATISERS[language]()


def _imported(module: str, package: str, code: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        language = vocabulary.language(code).name
        raise MissingExtraError(f"blend: the paper's matcher for {language}", package, "blend") from None


def _arabic() -> Lemmatiser:
    """Returns a lemmatiser that lives and ends in one thread, since it holds a database of that thread."""
    module = _imported("qalsadi.lemmatizer", "qalsadi", "ar")
    thread, storage = ThreadPoolExecutor(max_workers=1, thread_name_prefix="blend-arabic"), threading.local()

    def first_lemma(text: str) -> str:
        if not hasattr(storage, "lemmatizer"):
            storage.lemmatizer = module.Lemmatizer()
        return str(storage.lemmatizer.lemmatize(text))

    return lambda text: thread.submit(first_lemma, text).result()  # a text, which is taken apart into characters


def _assamese() -> Lemmatiser:
    tokenize = _imported("indicnlp.tokenize.indic_tokenize", "indic-nlp-library", "as")
    return lambda text: tokenize.trivial_tokenize(text)


def _english() -> Lemmatiser:
    spacy = _imported("spacy", "spacy", "en")
    try:
        pipeline = spacy.load("en_core_web_sm")
    except OSError:
        raise CultureTasksError(
            "blend: the paper's matcher needs spaCy's model en_core_web_sm for English answers, and it is not "
            "installed. Install it with: python -m spacy download en_core_web_sm"
        ) from None
    return lambda text: [token.lemma_ for token in pipeline(text)]


def _hausa() -> Lemmatiser:
    stemmer = _imported("hausastemmer", "hausastemmer", "ha")
    return lambda text: [stemmer.stem(word.strip("-")) for word in text.split()]


def _korean() -> Lemmatiser:
    tag = _imported("konlpy.tag", "konlpy", "ko")
    try:
        okt = tag.Okt()
    except Exception as error:  # the bridge to Java raises many kinds
        raise CultureTasksError(
            f"blend: the paper's matcher for Korean needs Java, which can't be started ({error!s:.200}). Install a "
            "Java runtime and set JAVA_HOME to it."
        ) from error
    return lambda text: okt.morphs(" ".join(word for word, kind in okt.pos(text) if kind != "Josa"), stem=True)


def _chinese() -> Lemmatiser:
    jieba = _imported("jieba", "jieba", "zh")
    jieba.setLogLevel(logging.WARNING)
    return lambda text: jieba.cut(text)


_LEMMATISERS: Mapping[str, Callable[[], Lemmatiser]] = {
    "ar": _arabic,
    "as": _assamese,
    "en": _english,
    "ha": _hausa,
    "ko": _korean,
    "zh": _chinese,
}

OFFICIAL_LANGUAGES = tuple(_LEMMATISERS)  # with the paper's matcher
