r"""Options: the reader of the chosen one, their order, and the choice by log-likelihood, for every benchmark.

A reply chooses an option by its label (a letter, a number, or a word such as ``True``) or by its exact text, in one of
two ways:

* a statement: ``The answer is B.``, ``{"answer_choice": "B"}``, ``I choose option B``, ``\boxed{B}``;
* a line that is the choice, whatever explains it on other lines, or whose first line begins with it: ``B``,
  ``B. soy milk``, ``Jawaban: B``, ``No, he was rude``.

Statements count more than lines that repeat the options. Two different choices are none, and so are a label that isn't
offered, a label with another option's text, a choice that is denied, supposed or doubted, and a label that reads as a
word: the article in "A bowl of rice", the number in "3 people".

A base model follows no instructions. A variant of a task for it compares the log-likelihoods of the allowed replies
(:func:`by_likelihood`).
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from culture_tasks.benchmarks.interface import Answered, Doc, MeanScore, Prompt, Scale, Task
from culture_tasks.text import answer_in

PERCENT = Scale("percent", 0.0, 100.0, digits=1, times=100.0)
ACCURACY = MeanScore(name="acc", title="accuracy", scale=PERCENT)
UNPARSED = MeanScore(name="unparsed", title="replies without a choice", scale=replace(PERCENT, better="lower"))

_MARKUP = re.compile(r"[*`$]|<\|\w+\|>|\\(?:text\w*|math\w+)(?=\{)|\\[()\[\]]")
"""Marks of Markdown and LaTeX around a choice, and special tokens such as ``<|im_end|>``."""

_RIGHT = (
    r"is (?:also possible|(?:also |the |my )*(?:final |most )?(?:answer|accurate|appropriate|best|correct|right))\b"
)
"""Words that call the option before them the choice."""

_STATEMENT = re.compile(
    r"(?<![a-z])(?:answer|choice|option|selection)(?:[ _](?:choice|id|index|key|letter|number|option))*"
    r"(?:[\"' ]*(?:\([^()\n]{0,80}\) ?)?[:=]|(?: [\w'’-]+){0,8}? (?:is|was|(?:would|should|must) be)\b)"
    r"|\b(?:claim|it|letter|one|statement|that|this)(?:(?: [\w'’-]+){0,4}? is|['’]s)\b"
    r"|\bI\b(?:['’ ]\w+){0,4}? (?:believe|choose|chose|go with|going with|opt for|pick|say|select|think)\b"
    r"|\b(?:hence|so|therefore|thus)\b"
    rf"|\\boxed|<answer>|(?<!\w)(?=(?:[A-Z]|\d) {_RIGHT})",
    re.IGNORECASE,
)
"""The beginning of a statement on its line, in the English words of the benchmarks' prompts."""

_DENIAL = re.compile(
    r"(?:\b(?:cannot|could|either|if|may|might|neither|never|not|unless|unlikely|unsure|whether)\b|n['’]t\b)"
    r"(?:(?!\b(?:because|but|hence|so|therefore|thus)\b)[^.,;:!?\n])*\Z",
    re.IGNORECASE,
)
"""A word that denies or doubts what its clause goes on to say."""

_LEAD = re.compile(r"[^\w\n]*(?:the )?(?:(?:answer|choice|letter|number|option)[ :#]+)?[^\w\n]*", re.IGNORECASE)
"""Punctuation and words between a statement, or the beginning of a line, and the choice."""

_WORD = re.compile(r"(?<!\w)(?:[^\W\d_]+|\d{1,3})(?![^\W_])")
"""A word or number, which may be a label."""

_END = re.compile(
    rf"\s*\Z|[^\w\s](?!\w)|\s+(?:[^\w\s]|(?:as|based|because|due|for|from|given|in|since)\b|{_RIGHT})", re.IGNORECASE
)
"""The text after a choice; any other word makes it a part of a sentence."""

_SENTENCE_END = re.compile(r"[.!?。]|,\s*[\"'][\w ]+[\"']\s*:")
"""The end of a sentence, or of an entry of a JSON object."""

_EXCEPTION = re.compile(r"\b(?:except|not|of|than|unlike)\W*\Z", re.IGNORECASE)
"""Words before an option that is named, but isn't the choice."""

_GAP = re.compile(r"\W*")
_CONJUNCTION = re.compile(r"[^\w.!?]*(?:(?:and|or)\W+)?", re.IGNORECASE)
_QUESTION = re.compile(r"[^\w\n]*\?")
"""Punctuation between words, with a conjunction, and with a question mark."""

_REACH = 500
"""Characters that are looked at beyond the text of an option."""


class _Choice(NamedTuple):
    """The labels that a piece of text chooses, whether it names the text of an option, and whether it says no more.

    The label of a choice that isn't offered, or is a question, is empty.
    """

    labels: frozenset[str] = frozenset()
    has_text: bool = False
    is_whole: bool = False


def read_choice(reply: str, options: Mapping[str, str]) -> str | None:
    """Returns the label of the option that a reply chooses, or None where that isn't certain.

    Args:
        reply: The reply, which may hold reasoning blocks.
        options: Texts of the options by label, such as ``{"A": "tea", "B": "milk"}``; an empty text is none.

    Examples:
        >>> drinks = {"A": "tea", "B": "soy milk"}
        >>> read_choice("{'answer_choice': 'B'}", drinks), read_choice("A cup of tea", drinks)
        ('B', None)
        >>> read_choice("This is false.", {"True": "", "False": ""})
        'False'
    """
    text = _plain(answer_in(reply))
    offered = {label: _GAP.sub("", _plain(option), count=1).rstrip(" .") for label, option in options.items()}
    reach = _REACH + max(map(len, offered.values()), default=0)
    statement_labels, line_labels = set[str](), set[str]()
    for statement in _STATEMENT.finditer(text):
        start, end = statement.span()
        if not _DENIAL.search(text[max(0, start - 80) : end]):
            statement_labels |= _choice(text[end : end + reach].partition("\n")[0], offered).labels
    first_labels: list[frozenset[str]] = []
    is_list = False
    for line in filter(None, map(str.strip, text.split("\n"))):
        choice = _choice(line[:reach], offered)
        name, _, value = line[:reach].partition(":")
        if not _choice(name, offered).labels and (value_choice := _choice(value, offered)).is_whole:
            choice = value_choice
        if choice.is_whole or len(choice.labels) > 1:
            line_labels |= choice.labels
            if is_list and next(iter(offered), None) in choice.labels:
                line_labels.add("")  # the options again, perhaps cut off after the first
        elif choice.has_text or not line[:1].isdecimal():
            first_labels.append(choice.labels)
        is_list = line.endswith(":") and not _STATEMENT.search(line)
    lines = line_labels or (set().union(*first_labels) if first_labels and first_labels[0] else set())
    labels = statement_labels | lines if len(lines) == 1 or not statement_labels else statement_labels
    return (labels.pop() or None) if len(labels) == 1 else None


def _plain(text: str) -> str:
    return re.sub(r"[^\S\n]+", " ", _MARKUP.sub("", unicodedata.normalize("NFKC", text))).strip()


def _choice(line: str, offered: Mapping[str, str]) -> _Choice:
    """Reads the choice that a line, or the rest of one, begins with."""
    body = _LEAD.sub("", line, count=1)
    word = _WORD.match(body)
    label = _label(word.group(), offered) if word else None
    tail = body[word.end() :] if word else ""
    labels: frozenset[str] = frozenset()
    has_text = False
    if label and word and not (len(label) == 1 and word.group() != label and re.match(r"\s\w", tail)):
        text_labels, remainder = _texts(_GAP.sub("", tail, count=1), offered)
        if text_labels and (_END.match(tail) or _END.match(remainder)):
            labels = frozenset({label}) if label in text_labels else text_labels | {label}
            tail, has_text = remainder, True
        elif _END.match(tail):
            labels = frozenset({label})
    if not labels:
        text_labels, remainder = _texts(body, offered)
        if text_labels and _END.match(remainder):
            further_labels, _ = _texts(_CONJUNCTION.sub("", remainder, count=1), offered)
            labels, tail, has_text = text_labels | further_labels, remainder, True
        elif word and not label and _is_like_a_label(word.group(), offered) and _END.match(tail):
            labels = frozenset({""})
    if not labels:
        return _Choice()
    labels |= _further_labels(_SENTENCE_END.split(tail.lstrip(" .:)"), maxsplit=1)[0], offered)
    if _QUESTION.match(tail):
        labels |= {""}
    return _Choice(labels, has_text=has_text, is_whole=not _GAP.sub("", tail, count=1))


def _texts(text: str, offered: Mapping[str, str]) -> tuple[frozenset[str], str]:
    """Returns the options with the longest text that a text begins with, and the text after it."""
    lengths = {
        label: len(option)
        for label, option in offered.items()
        # no letter, digit, or mark of a letter such as a vowel sign follows
        if option
        and text[: len(option)].casefold() == option.casefold()
        and unicodedata.category((text[len(option) :] or " ")[0])[0] not in "LMN"
    }
    longest = max(lengths.values(), default=0)
    return frozenset(label for label, length in lengths.items() if length == longest), text[longest:]


def _label(word: str, offered: Mapping[str, str]) -> str | None:
    word = str(int(word)) if word.isdecimal() else word.casefold()
    return next((label for label in offered if label.casefold() == word), None)


def _is_like_a_label(word: str, offered: Mapping[str, str]) -> bool:
    if all(label.isdecimal() for label in offered):
        return word.isdecimal()
    return len(word) == 1 and word.isupper() and all(len(label) == 1 for label in offered)


def _further_labels(sentence: str, offered: Mapping[str, str]) -> set[str]:
    """Returns the labels that the rest of a sentence names as choices too."""
    labels = set()
    for word in _WORD.finditer(sentence):
        label = _label(word.group(), offered)
        is_named = label and (len(label) > 1 or word.group() == label) and _END.match(sentence, word.end())
        if label and is_named and not _EXCEPTION.search(sentence[max(0, word.start() - 12) : word.start()]):
            labels.add(label)
    return labels


def share(labels: Sequence[str | None], label: str | None) -> float:
    """Returns the share of labels that are this one."""
    return labels.count(label) / len(labels)


def score_choices(
    doc: Doc,
    responses: Sequence[str],
    labels: Sequence[str | None],
    right: str,
    *,
    values: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Answered:
    """Returns a document with the share of its labels that are right; a reply without a certain choice is wrong.

    The document has an ``id`` and the fingerprint of its ``data``. There is one label per response, None where no
    choice is certain. ``values`` are for further metrics than :data:`ACCURACY` and :data:`UNPARSED`, and ``fields``
    further fields of :class:`Answered`.
    """
    return Answered(
        item=doc["id"],
        responses=responses,
        data={"data": doc["data"]},
        labels=tuple(labels),
        score=share(labels, right),
        values={**(values or {}), UNPARSED.name: share(labels, None)},
        **fields,
    )


def by_likelihood(task: Task, choices: Callable[[Any], Sequence[str]], cue: str = "") -> Task:
    """Returns the variant ``<name>_ll`` of a text task, for models that continue a text and follow no instructions.

    The model writes nothing. Behind the prompt, lm-eval puts a blank and each of the allowed replies, and the reply
    with the largest sum of the log-probabilities of its tokens is scored as if the model had written it. Nothing is
    normalised by length, since a reply is a letter or a short word. lmms-eval's models give no log-likelihoods of text.

    ``choices`` gives the allowed replies to a document. The prompt ends with ``cue`` where it has none for an answer.
    """

    def prompt(doc: Any) -> Prompt:
        task_prompt = task.prompt(doc)
        *before, last = task_prompt.parts
        assert isinstance(last, str)
        return replace(task_prompt, parts=(*before, f"{last.rstrip()}{cue}"))

    return replace(
        task,
        name=f"{task.name}_ll",
        about=f"{task.about}; by log-likelihood",
        title=f"{task.title or task.name}, by log-likelihood",
        prompt=prompt,
        choices=choices,
        harnesses=("lm_eval",),
        tag=f"{task.tag}_ll" if task.tag else "",
        note="By log-likelihood: the model writes nothing.",
    )


def most_likely(replies: Sequence[str], likelihoods: Sequence[float]) -> str:
    """Returns the reply with the largest log-likelihood; nothing where two are equal, or one is no number.

    Examples:
        >>> most_likely(["A", "B", "C"], [-2.5, -0.5, -1.0]), most_likely(["A", "B"], [-1.0, -1.0])
        ('B', '')
    """
    best = [reply for reply, value in zip(replies, likelihoods, strict=True) if value == max(likelihoods)]
    return best[0] if len(best) == 1 and not any(map(math.isnan, likelihoods)) else ""
