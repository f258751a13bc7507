"""What the text around emotion words says of them: denied, felt, the best choice; joined, contrasted or explained."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, cast

from culture_tasks.benchmarks.cedar.labels import LANGUAGES, Language
from culture_tasks.benchmarks.cedar.reading.lexicon import SPACED, UNSPACED, WORD, language_file, phrases

if TYPE_CHECKING:
    from collections.abc import Iterable

    from culture_tasks.benchmarks.cedar.reading.mentions import Mention

_BEFORE, _AFTER = 80, 60
_LONGEST_GAP = 60
# Where a clause ends, and what is left out of the text around an unspaced word: white space and markup.
_CLAUSE_END: Final = re.compile(r"[.,;:!?\n()\[\]{}|]")
_MARKUP: Final = re.compile(r"[\s\"'*_`]+")
# A denial that something is put in between: "not, in my view, anger"; the group is the denial.
_ASIDE: Final = re.compile(r"((?<!\S)(?:not|\w+n't|no es|no seria|ليس|ليست|si|sio|siyo)),[^.,;:!?\n]{1,30},(?=\s)")
_NEVER: Final = re.compile(r"(?!)")
# A label that is asked about and denied: "Anger? No, …".
_QUESTIONED: Final = re.compile(r"[\s\"'*_)]{0,4}\?\s{0,3}(?:no|not|nope|nah|لا|नहीं|hapana|sio|siyo|不|いいえ|違)")
# A sentence ends, or a parenthesis or an explanation after a dash or colon begins.
_BREAK: Final = re.compile(r"[.!?;\n(]|\s[-–—]\s|[–—:]")
# A word of any language; an unspaced run is one word.
_GAP_WORD: Final = re.compile(rf"{WORD.pattern}|[ぁ-ヿ㐀-鿿]+")
# What makes a noun of a Japanese or Chinese emotion word.
NOUN_ENDINGS: Final = "(?:感|さ|心|の念|の気持ち|の感情|的感觉|的?情绪|的?情緒)?"
_NOUN_ENDING: Final = re.compile(rf"\A{NOUN_ENDINGS}")
# "And", in more words than one.
_AS_WELL_AS: Final = re.compile(" (?:as well as|asi como) ")


def any_of(alternatives: Iterable[str], *, around: str = "{}") -> re.Pattern[str]:
    """Compiles an alternation of literal phrases, longest first; without any it never matches."""
    ordered = sorted(set(alternatives), key=lambda phrase: (-len(phrase), phrase))
    return re.compile(around.format(f"(?:{'|'.join(map(re.escape, ordered))})")) if ordered else _NEVER


def phrases_of(languages: Iterable[Language], *keys: str) -> list[str]:
    """Returns the phrases that several languages' files list under any of the keys."""
    return [phrase for language in languages for key in keys for phrase in phrases(language, key)]


@dataclass(frozen=True, slots=True)
class Grammar:
    """Patterns over the text around a mention.

    Where words are spaced, they are joined by single spaces and begin and end with one; Japanese and Chinese are
    without spaces and markup.
    """

    negators: re.Pattern[str]
    no_negation: re.Pattern[str]
    negated_by: re.Pattern[str]
    contrast: re.Pattern[str]
    feel: re.Pattern[str]
    felt: re.Pattern[str]
    best: re.Pattern[str]


_GRAMMAR_KEYS: Final = (
    *("negators", "no_negation", "negated_by", "contrast", "because", "joiners", "copulas", "choice", "answer"),
    *("choose", "feel", "felt", "best", "subjects", "hedges", "openers"),
)


@cache
def _vocabulary(language: Language) -> frozenset[str]:
    return frozenset(word for phrase in phrases_of((language,), *_GRAMMAR_KEYS) for word in phrase.split())


@lru_cache(maxsize=4096)
def is_foreign(words: str) -> bool:
    """Whether the words around an English label are another language's: "si anger", "No es anger, sino sadness"."""
    found = set(words.split())
    english = len(found & _vocabulary("en"))
    return any(len(found & _vocabulary(language)) > english for language in SPACED if language != "en")


@cache
def grammar(language: Language | None) -> Grammar:
    """Returns the patterns for a mention in a language: that language's and English ones, or those of all for None."""
    languages: tuple[Language, ...] = SPACED
    if language is not None:
        languages = (language, "en") if language in SPACED else ("en",)

    def words(key: str, around: str) -> re.Pattern[str]:
        return any_of(phrases_of(languages, key), around=around)

    negators = words("negators", "{}").pattern
    return Grammar(
        negators=re.compile(rf" (?:{negators}|\w+n't)(?= )"),
        no_negation=words("no_negation", "(?<= ){}(?= )"),
        negated_by=words("negated_by", r" (?:\w+ )?{} "),
        contrast=words("contrast", " {}(?= )"),
        feel=words("feel", r" {} (?:\S+ ){{0,3}}\Z"),
        felt=words("felt", r" (?:\S+ ){{0,2}}{}"),
        best=words("best", " {} "),
    )


@cache
def unspaced_grammar() -> Grammar:
    """Returns the patterns of Japanese and Chinese."""

    def of(key: str, around: str) -> re.Pattern[str]:
        return any_of(phrases_of(UNSPACED, key), around=around)

    after = "|".join(cast("str", language_file(language)["after"]) for language in UNSPACED)
    adjacent = of("adjacent", "{}").pattern
    return Grammar(
        negators=re.compile(rf"{of('before', '{}').pattern}.{{0,8}}\Z|{adjacent}\Z"),
        no_negation=of("not_negation", "{}"),
        negated_by=re.compile(after),
        contrast=of("contrast", "{}"),
        feel=of("feel", r"{}.{{0,4}}\Z"),
        felt=of("felt", r"(?:感|さ|心|の念|の気持ち|の感情)?{}"),
        best=of("best", r"(?:感|さ|の?(?:感情|気持ち)|的?情绪|的?情緒)?{}"),
    )


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The clause around a mention, in the two forms that the grammars read."""

    words_before: str
    words_after: str
    run_before: str
    run_after: str


def _words(clause: str) -> str:
    return f" {' '.join(WORD.findall(clause))} "


@lru_cache(maxsize=4096)
def _surroundings(before: str, after: str) -> Surroundings:
    before = _ASIDE.sub(r"\1", before)  # "not, in my view, anger"
    before, after = _CLAUSE_END.split(before)[-1], _CLAUSE_END.split(after, maxsplit=1)[0]
    return Surroundings(_words(before), _words(after), _MARKUP.sub("", before), _MARKUP.sub("", after))


def _spoken_language(around: Surroundings, mention: Mention) -> Language | None:
    foreign = mention.language == "en" and is_foreign(around.words_before + around.words_after)
    return None if foreign else mention.language


def surroundings(text: str, mention: Mention) -> Surroundings:
    """Returns what precedes and follows a mention within its clause."""
    before = text[max(0, mention.start - _BEFORE) : mention.start]
    return _surroundings(before, text[mention.end : mention.end + _AFTER])


def is_denied(text: str, mention: Mention) -> bool:
    """Whether the text says that the emotion is not the one: "not sadness", "sadness doesn't fit", "悲しみではなく"."""
    around = surroundings(text, mention)
    return _denied(around, _spoken_language(around, mention)) or _QUESTIONED.match(text, mention.end) is not None


@lru_cache(maxsize=4096)
def _denied(around: Surroundings, language: Language | None) -> bool:
    rules, unspaced = grammar(language), unspaced_grammar()
    before = _since_contrast(_single_spaced(rules.no_negation.sub("", around.words_before)), rules)
    own = _own_part(around.words_after, rules)
    run = unspaced.contrast.split(unspaced.no_negation.sub("", around.run_before))[-1]
    return bool(
        rules.negators.search(before)
        or rules.negated_by.match(own)
        or (language in {"hi", None} and _hindi_denial().search(own))
        or unspaced.negators.search(run)
        or unspaced.negated_by.match(around.run_after)
    )


def _single_spaced(words: str) -> str:
    return f" {' '.join(words.split())} "


def _since_contrast(words_before: str, rules: Grammar) -> str:
    """What follows the last word of contrast, that word included, since "न कि" and "وليس" contrast and deny."""
    start = 0
    for turn in rules.contrast.finditer(words_before):
        start = turn.start()
    return words_before[start:]


def _own_part(words_after: str, rules: Grammar) -> str:
    return rules.contrast.split(words_after)[0] + " "


@cache
def _hindi_denial() -> re.Pattern[str]:
    """Hindi denies after the word, anywhere in the clause."""
    return any_of(phrases("hi", "negated_by"), around=" {}(?= )")


def is_felt(text: str, mention: Mention) -> bool:
    """Whether the text says that someone feels the emotion: "feels relief", "安堵を感じる"."""
    around = surroundings(text, mention)
    rules, unspaced = grammar(_spoken_language(around, mention)), unspaced_grammar()
    return bool(
        rules.feel.search(rules.contrast.split(around.words_before)[-1])
        or rules.felt.match(around.words_after)
        or unspaced.feel.search(around.run_before)
        or unspaced.felt.match(around.run_after)
    )


def fits_best(text: str, mention: Mention) -> bool:
    """Whether the text says after the word that it is the best choice: "relief fits best", "安堵が最も適切"."""
    around = surroundings(text, mention)
    return bool(
        grammar(_spoken_language(around, mention)).best.match(around.words_after)
        or unspaced_grammar().best.match(around.run_after)
    )


@dataclass(frozen=True, slots=True)
class Links:
    """Words that join, contrast or explain, of all languages together."""

    joiners: frozenset[str]
    alternatives: frozenset[str]
    because: re.Pattern[str]
    contrast: re.Pattern[str]


def _in_spoken(spaced: Iterable[str], unspaced: Iterable[str]) -> re.Pattern[str]:
    return re.compile(f"{any_of(spaced, around='(?<= ){}(?= )').pattern}|{any_of(unspaced).pattern}")


@cache
def linking(*keys: str) -> re.Pattern[str]:
    """Matches what the languages list under any of the keys; Japanese and Chinese are read without word boundaries."""
    return _in_spoken(phrases_of(SPACED, *keys), phrases_of(UNSPACED, *keys))


@cache
def links() -> Links:
    """Returns the linking words of all languages."""

    def turns(languages: Iterable[Language]) -> list[str]:
        reasons = {phrase.split()[0] for phrase in phrases_of(languages, "because", "meanwhile")}
        return [phrase for phrase in phrases_of(languages, "contrast") if phrase.split()[0] not in reasons]

    return Links(
        joiners=frozenset(phrases_of(LANGUAGES, "joiners")),
        alternatives=frozenset(phrases_of(LANGUAGES, "alternatives")),
        because=linking("because"),
        contrast=_in_spoken(turns(SPACED), turns(UNSPACED)),
    )


def gap_words(gap: str) -> list[str]:
    """Returns the words of the text between two mentions; an unspaced run is one word."""
    return _GAP_WORD.findall(gap)


def spoken(gap: str) -> str:
    """Returns the words of a text between single spaces, the form in which linking words are looked for."""
    return _AS_WELL_AS.sub(" and ", f" {' '.join(gap_words(gap))} ")


def joins(gap: str) -> bool:
    """Whether nothing but punctuation, numbering and linking words stands between two mentions."""
    if len(gap) > _LONGEST_GAP or "{" in gap:
        return False
    known = links().joiners
    gap = _NOUN_ENDING.sub("", gap)
    return all(word in known or len(word) == 1 or word.isdigit() for word in spoken(gap).split())


def sets_aside(gap: str) -> bool:
    """Whether the second mention only stands beside the first one: "sadness (with some sympathy)"."""
    return "(" in gap and bool(gap_words(gap)) and not offers_alternative(gap)


def gives_reason(gap: str) -> bool:
    """Whether a word such as "because" stands in between."""
    return links().because.search(spoken(gap)) is not None


def offers_alternative(gap: str) -> bool:
    """Whether the text between two mentions joins them by "or"."""
    return any(word in links().alternatives for word in gap_words(gap))


def breaks(gap: str) -> re.Match[str] | None:
    """Finds where a sentence ends, or an explanation begins behind a dash, a colon or a parenthesis."""
    return _BREAK.search(gap)


def explains(gap: str) -> bool:
    """Whether what follows is an explanation: a sentence ends, or a word such as "because" stands in between."""
    return breaks(gap) is not None or gives_reason(gap)


def contrasts(gap: str) -> bool:
    """Whether a word such as "but" or "then" stands in between."""
    return links().contrast.search(spoken(gap)) is not None
