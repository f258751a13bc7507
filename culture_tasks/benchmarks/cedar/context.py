"""What the text around a mention says of it: denied, cued as the choice, part of an explanation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, cast

from culture_tasks.benchmarks.cedar.labels import Language
from culture_tasks.benchmarks.cedar.lexicon import SPACED, UNSPACED, WORD, language_file, phrases

if TYPE_CHECKING:
    from collections.abc import Iterable

    from culture_tasks.benchmarks.cedar.mentions import Mention

_BEFORE, _AFTER = 80, 60
_CLAUSE_END: Final = re.compile(r"[.,;:!?\n()\[\]{}|]")
_MARKUP: Final = re.compile(r"[\s\"'*_`]+")
_ASIDE: Final = re.compile(r"((?<!\S)(?:not|\w+n't|no es|no seria|ليس|ليست|si|sio|siyo)),[^.,;:!?\n]{1,30},(?=\s)")
_NEVER: Final = re.compile(r"(?!)")
_QUESTIONED: Final = re.compile(r"[\s\"'*_)]{0,4}\?\s{0,3}(?:no|not|nope|nah|لا|नहीं|hapana|sio|siyo|不|いいえ|違)")


def any_of(alternatives: Iterable[str], *, around: str = "{}") -> re.Pattern[str]:
    """Compiles an alternation of literal phrases, longest first; without any it never matches."""
    ordered = sorted(set(alternatives), key=lambda phrase: (-len(phrase), phrase))
    return re.compile(around.format(f"(?:{'|'.join(map(re.escape, ordered))})")) if ordered else _NEVER


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


@cache
def grammar(language: Language) -> Grammar:
    """Returns the patterns for a mention in a language: that language's and English ones."""
    both: tuple[Language, ...] = (language, "en") if language in SPACED else ("en",)

    def words(key: str, around: str) -> re.Pattern[str]:
        return any_of((phrase for one in both for phrase in phrases(one, key)), around=around)

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
        return any_of((phrase for language in UNSPACED for phrase in phrases(language, key)), around=around)

    after = "|".join(cast("str", language_file(language)["after"]) for language in UNSPACED)
    adjacent = of("adjacent", "{}").pattern
    return Grammar(
        negators=re.compile(rf"{of('before', '{}').pattern}.{{0,8}}\Z|{adjacent}\Z"),
        no_negation=of("not_negation", "{}"),
        negated_by=re.compile(after),
        contrast=of("contrast", "{}"),
        feel=of("feel", r"{}.{{0,4}}\Z"),
        felt=of("felt", r"(?:感|心|の念|の気持ち|の感情)?{}"),
        best=of("best", r"(?:感|の?(?:感情|気持ち)|的?情绪|的?情緒)?{}"),
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


def surroundings(text: str, mention: Mention) -> Surroundings:
    """Returns what precedes and follows a mention within its clause."""
    before = text[max(0, mention.start - _BEFORE) : mention.start]
    return _surroundings(before, text[mention.end : mention.end + _AFTER])


def is_denied(text: str, mention: Mention) -> bool:
    """Whether the text says that the emotion is not the one: "not sadness", "sadness doesn't fit", "悲しみではなく"."""
    around = surroundings(text, mention)
    return _denied(around, mention.language) or _QUESTIONED.match(text, mention.end) is not None


@lru_cache(maxsize=4096)
def _denied(around: Surroundings, language: Language) -> bool:
    rules, unspaced = grammar(language), unspaced_grammar()
    before = _since_contrast(_single_spaced(rules.no_negation.sub("", around.words_before)), rules)
    own = _own_part(around.words_after, rules)
    run = unspaced.contrast.split(unspaced.no_negation.sub("", around.run_before))[-1]
    return bool(
        rules.negators.search(before)
        or rules.negated_by.match(own)
        or (language == "hi" and _hindi_denial().search(own))
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
    rules, unspaced = grammar(mention.language), unspaced_grammar()
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
        grammar(mention.language).best.match(around.words_after) or unspaced_grammar().best.match(around.run_after)
    )
