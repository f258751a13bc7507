"""The paper's matcher, with lemmatisers that stand in for the packages, which are not installed here."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace

import pytest

from culture_tasks.benchmarks.blend import official
from culture_tasks.benchmarks.blend.official import official_match, require
from culture_tasks.errors import CultureTasksError, MissingExtraError


@pytest.fixture(autouse=True)
def forgotten_lemmatisers():
    """Forgets the lemmatisers that a test made."""
    caches = (official._lemmatiser, official._lemmas)
    yield
    for each in caches:
        each.cache_clear()


@pytest.fixture
def installed(monkeypatch):
    """Returns what puts a module into the place of a package."""

    def put(name, **contents):
        parts = name.split(".")
        for length in range(1, len(parts) + 1):
            module = ModuleType(".".join(parts[:length]))
            monkeypatch.setitem(sys.modules, module.__name__, module)
        for each, content in contents.items():
            setattr(module, each, content)

    return put


def words_without_s(text):
    return [SimpleNamespace(lemma_=word.removesuffix("s")) for word in text.split()]


def test_a_part_of_the_response_needs_no_lemmatiser(monkeypatch):
    monkeypatch.setattr(official, "_lemmas", None)
    assert official_match("tea", "steak", "en")
    assert official_match("soy-milk", "soy milk", "en")
    assert official_match("soy milk", "some soy-milk", "en")


def test_every_lemma_must_be_among_those_of_the_response(installed):
    installed("spacy", load=lambda name: words_without_s)
    assert official_match("Boiled Eggs", "egg boiled hard", "en")  # only lemmas are compared in lower case
    assert not official_match("Boiled Eggs", "boiled potato", "en")
    assert official_match("? Cafés", "cafe au lait", "en")  # without accents and punctuation
    assert official_match("?", "tea", "en")  # no lemma at all, as in the original


def in_threads(function):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(function, range(8)))


def test_for_arabic_one_thread_looks_for_the_characters_of_the_first_word_s_lemma(installed):
    threads = set()

    class Lemmatizer:
        def __init__(self):
            threads.add(threading.get_ident())

        def lemmatize(self, text):
            threads.add(threading.get_ident())
            return text.split()[0] if text else ""

    installed("qalsadi.lemmatizer", Lemmatizer=Lemmatizer)
    assert official_match("abc xyz", "cab", "ar")  # as in the original
    assert not official_match("abd xyz", "cab", "ar")
    in_threads(lambda number: official_match(f"{number}", "b", "ar"))
    assert len(threads - {threading.get_ident()}) == len(threads) == 1


def test_two_threads_never_lemmatise_at_the_same_time(installed):
    inside, together = threading.Semaphore(1), []

    def pipeline(text):
        together.append(not inside.acquire(blocking=False))
        words = words_without_s(text)
        inside.release()
        return words

    installed("spacy", load=lambda name: pipeline)
    in_threads(lambda number: official_match(f"a{number}", "b", "en"))
    assert together == [False] * 9  # eight answers and one response


def test_for_other_languages_words_or_stems_are_compared(installed):
    class Okt:
        def pos(self, text):
            return [(word, "Josa" if word == "를" else "Noun") for word in text.split()]

        def morphs(self, text, stem):
            assert stem
            return text.split()

    installed("konlpy.tag", Okt=Okt)
    installed("jieba", cut=lambda text: iter(text.split()), setLogLevel=lambda level: None)
    installed("indicnlp.tokenize.indic_tokenize", trivial_tokenize=lambda text: text.split())
    sys.modules["indicnlp.tokenize"].indic_tokenize = sys.modules["indicnlp.tokenize.indic_tokenize"]
    installed("hausastemmer", stem=lambda word: word[:4])
    assert official_match("를 김치 밥", "밥 x 김치", "ko")  # without particles
    assert official_match("豆浆 茶", "茶 和 豆浆", "zh")
    assert official_match("ভাত মাছ", "মাছ আৰু ভাত", "as")
    assert official_match("gidaje", "gidan -gida-", "ha")
    assert not official_match("gidaje", "koko", "ha")


def test_what_is_missing_is_named_with_how_to_install_it(installed, monkeypatch):
    packages = {
        "ar": ("Arabic", "qalsadi"),
        "as": ("Assamese", "indic-nlp-library"),
        "en": ("English", "spacy"),
        "ha": ("Hausa", "hausastemmer"),
        "zh": ("Chinese", "jieba"),
    }
    for module in ("qalsadi", "indicnlp", "spacy", "hausastemmer", "jieba"):
        monkeypatch.setitem(sys.modules, module, None)
    for language, (name, package) in packages.items():
        with pytest.raises(MissingExtraError) as caught:
            require(language)
        assert f"the paper's matcher for {name} needs the package {package!r}" in str(caught.value)
        assert "pip install 'culture-tasks[blend]'" in str(caught.value)

    def no_model(name):
        raise OSError(f"[E050] Can't find model {name!r}")

    def no_java():
        raise RuntimeError("No JVM shared library file found")

    installed("jieba", cut=str.split, setLogLevel=lambda level: None)
    with pytest.raises(MissingExtraError, match="spacy"):  # every language needs English too
        require("zh")
    installed("spacy", load=no_model)
    with pytest.raises(CultureTasksError, match="python -m spacy download en_core_web_sm"):
        require("en")
    installed("konlpy.tag", Okt=no_java)
    with pytest.raises(CultureTasksError, match=r"for Korean needs Java, .*No JVM shared.* set JAVA_HOME"):
        require("ko")
