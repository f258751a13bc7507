r"""The reader of the option that a reply chooses, and the score of a choice, for every benchmark.

A reply names an option by its label (a letter, a number, or a word such as ``True``) or by its text. It chooses it by

* being the option's text, before anything is stripped;
* a statement, a clause that calls it the answer without denial or doubt: ``The answer is B``, ``B is correct``,
  ``{"answer_choice": "B"}``, ``\boxed{B}``, ``正确答案是B``;
* a line that is the option, whatever other lines explain: ``B``, ``B. soy milk``, ``Jawaban: B``;
* a line that begins with it, where that is no item of a list: ``No, he was rude``;
* being one short line without denial that names it alone, at its end: ``Definitely B.``.

Lines that name options in their order are a list and choose none. A reply ends with its turn, or where a new question
begins. Two different choices are none; nor is a label that isn't offered, or a letter with another option's text.
Of 1,455 replies of five models to CulturalBench Easy and WorldCuisines, 1,303 are read: 477 by their lines alone, 10 by
beginnings, 1 by a statement. Of 1,229 written in 40 languages, these are 372, 77 and 35; single lines are 51.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from culture_tasks import prompt_files
from culture_tasks.benchmarks.interface import Doc, MeanScore, Picture, Prompt, Scale, Score
from culture_tasks.benchmarks.option_names import (
    BE,
    BOTH,
    CALLED_RIGHT,
    CHOOSE,
    CLAUSE,
    IS_NOT,
    LATIN,
    LEAD,
    LIST_LEAD,
    NAME,
    NAMED,
    NOT,
    OR,
    PONDER,
    RIGHT,
    TEXT,
    UNKNOWN,
    options_of,
    plain_reply,
    turn_of,
    with_names,
)
from culture_tasks.benchmarks.reporting import Groups
from culture_tasks.text import answer_in

PERCENT = Scale("percent", 0.0, 100.0, digits=1, times=100.0)
ACCURACY = MeanScore(name="acc", title="accuracy", scale=PERCENT)
UNPARSED = MeanScore(name="unparsed", title="replies without a choice", scale=replace(PERCENT, better="lower"))

_ANSWER = re.compile(f"{RIGHT}|{CHOOSE}", re.IGNORECASE)
_SAY = r"going? with|hence|I(?:['’ ]\w+){0,2} (?:believe|say|think)|leav(?:es|ing)|opt for|so|therefore|thus"
_LINK = re.compile(rf"(?:{BE}|[:=—–]|\b(?:answer|choose|pick|select|{_SAY})\b){LEAD}\Z", re.IGNORECASE)
_SUBJECT = re.compile(
    rf"\b(?:best|claim|I|it|letter|one|option|right|statement|that|this|{_SAY})\b|^\W*(?:is|es|ist)\b", re.IGNORECASE
)
_DENIED = re.compile(rf"{NOT}|\bor (?:\w+ )?\Z", re.IGNORECASE)
_CALLED_RIGHT = re.compile(CALLED_RIGHT, re.IGNORECASE)
_OPTION = re.compile(f"[{NAMED}]+")
_ITEM = re.compile(rf"\n|(?<=[.;!]) (?=(?:{NAME} )?[{chr(BOTH)}-{chr(TEXT - 1)}])", re.IGNORECASE)
_IS_NOT = re.compile(rf"(?:\s*\(?[^()\n]*\))?{IS_NOT}", re.IGNORECASE)
_FIRST = re.compile(rf"(?:\W*\d+[.)] )?(?P<lead>{LEAD})(?P<option>[{NAMED}]+)(?P<rest>.*)", re.IGNORECASE)


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
    text = turn_of(answer_in(reply))
    same = [label for label, option in options.items() if option.strip().casefold() == text.casefold() != ""]
    if len(same) == 1 and text.casefold() not in map(str.casefold, options):
        return same[0]
    text = plain_reply(text, options)
    labels = list(options)
    chosen = _chosen(with_names(text, options), text, labels)
    return labels[chosen.pop()] if len(chosen) == 1 and UNKNOWN not in chosen else None


def _chosen(text: str, plain: str, labels: Sequence[str]) -> set[int]:
    """Returns the options that a reply chooses."""
    chosen: set[int] = set()
    items: list[tuple[int, bool, bool]] = []  # an option that begins a line; is it a mere label; may it be chosen
    lines = [line for line in map(str.strip, _ITEM.split(text)) if line]
    for before, line in zip(["", *lines], lines, strict=False):
        chosen |= _stated(line)
        *others, last = re.split(r"[.!。！]+", line.rstrip(".!。！ "))
        if others and line[-1] in ".!。)" and re.fullmatch(rf"\W*[{NAMED}]+\W*", last):
            chosen |= options_of("".join(_OPTION.findall(last)))
        name, _, value = line.partition(":")
        match = _FIRST.match(value)
        if match and not _OPTION.search(name) and not _DENIED.search(name) and not re.search(r"\w", match["rest"]):
            chosen |= options_of(match["option"])
        elif match := _FIRST.match(line):
            options, rest = options_of(match["option"]), match["rest"]
            is_word = match["option"] >= chr(TEXT) or len(labels[0]) > 1
            is_list = LIST_LEAD.match(before) is not None
            if not re.search(r"\w", rest):
                if len(options) > 1 or not re.fullmatch(rf"\W*{NAME}?\W*", match["lead"], re.IGNORECASE):
                    chosen |= options
                else:
                    is_lone = match["option"] < chr(BOTH)
                    items.append((min(options), is_lone, is_lone or is_word or not is_list))
            elif len(options) == 1 and not _IS_NOT.match(rest):
                has_text = chr(BOTH) <= match["option"] < chr(TEXT)
                is_first = not items and not chosen and (not before or (before.endswith(":") and not is_list))
                is_item = not is_word and re.match(r"\W*[.:)\]-]", rest) is not None
                may_be = is_first and (has_text or not labels[0].isdecimal()) if is_item else True
                items.append(
                    (min(options), False, may_be and (has_text or not re.match(rf"\s*{OR}", rest, re.IGNORECASE)))
                )
    runs: list[list[tuple[int, bool, bool]]] = []
    for item in items:
        last = runs[-1][-1] if runs else item
        is_next = item[0] == last[0] + 1 or (item[0] > last[0] and not item[1])
        if is_next and (not last[1] or len(runs[-1]) > 1):
            runs[-1].append(item)
        else:
            runs.append([item])
    chosen |= {run[0][0] for run in runs if len(run) == 1 and run[0][2]}
    return chosen if chosen or items or len(lines) != 1 else _only(lines[0], plain, labels)


def _stated(line: str) -> set[int]:
    """Returns the options that a line states to be the answer."""
    stated: set[int] = set()
    start = 0
    for clause in [*CLAUSE.finditer(line), None]:
        end = clause.start() if clause else len(line)
        for option in _OPTION.finditer(line, start, end):
            before, after = line[max(start, option.start() - 120) : option.start()], line[option.end() : end]
            is_linked = _LINK.search(before) is not None
            is_answer = _ANSWER.search(before) is not None and (is_linked or option.group() < chr(TEXT))
            is_right = len(options_of(option.group())) == 1 and _CALLED_RIGHT.match(line, option.end()) is not None
            is_stated = is_answer or is_right or (is_linked and _SUBJECT.search(before) is not None)
            if is_stated and not _DENIED.search(before) and not re.search(r"\bif\b", after, re.IGNORECASE):
                stated |= options_of(option.group()) | ({UNKNOWN} if re.match(r"\W*or\b", after) else set())
        start = clause.end() if clause else end
    return stated


def _only(line: str, plain: str, labels: Sequence[str]) -> set[int]:
    """Returns the one option that a short line names, at its end or in a script other than Latin."""
    if len(line) > 150 or re.search(f"{NOT}|{PONDER}", line, re.IGNORECASE) or "?" in plain:
        return set()
    if re.fullmatch(rf"[A-Za-z]+ [{NAMED}]\W*", line) and not _ANSWER.search(line):  # "Vitamin D"
        return set()
    names = "".join(_OPTION.findall(line))
    if len(options_of(names)) == 1 and re.search(rf"[{NAMED}]\W*\Z", line):
        is_linked = _LINK.search(line[: line.rindex(names[-1])])
        return options_of(names) if names[0] < chr(TEXT) or is_linked else set()
    alone = set(re.findall(rf"(?<![{LATIN}\d'’-])[A-Z](?![{LATIN}\d'’-])", plain))
    if len(alone) == 1 and len(labels[0]) == 1 and not re.search(f"[{LATIN}]{{2}}", plain):
        return {labels.index(label) if label in labels else UNKNOWN for label in alone}
    return set()


def filled(package: str, name: str, *before: Picture) -> Callable[[Doc], Prompt]:
    """Returns what fills a prompt file with a document's fields, and its slots ``{a}``, ``{b}`` … with the options."""

    def prompt(doc: Doc) -> Prompt:
        options = {letter.lower(): option for letter, option in lettered(doc.get("options", ())).items()}
        return Prompt((*before, prompt_files.load(package, name).fill({**doc, **options})))

    return prompt


def share(labels: Sequence[str | None], label: str | None) -> float:
    """Returns the share of labels that are this one."""
    return labels.count(label) / len(labels)


def lettered(options: Sequence[str]) -> dict[str, str]:
    """Returns options by their letters, from A."""
    return {chr(ord("A") + number): option for number, option in enumerate(options)}


def score_options(
    doc: Doc,
    responses: Sequence[str],
    options: Mapping[str, str],
    groups: Mapping[str, Groups],
    *,
    values: Callable[[Sequence[str | None]], Mapping[str, Any]] = lambda _: {},
    **fields: Any,
) -> Score:
    """Reads which of some options the responses choose; the document's ``answer`` is the label of the right one.

    ``values`` gives the values of further metrics by the labels that were read; the rest is as in
    :func:`score_choices`.
    """
    labels, right = [read_choice(response, options) for response in responses], doc["answer"]
    references = (f"{right}. {options[right]}" if options[right] else right,)
    fields = {"values": values(labels), "references": references, **fields}
    return score_choices(doc, responses, labels, right, groups, **fields)


def score_choices(
    doc: Doc,
    responses: Sequence[str],
    labels: Sequence[str | None],
    right: str,
    groups: Mapping[str, Groups],
    *,
    values: Mapping[str, Any],
    **fields: Any,
) -> Score:
    """Returns a document with the share of its labels that are right; None is a reply without a certain choice.

    ``values`` are for further metrics than :data:`ACCURACY` and :data:`UNPARSED`; the rest is as in :meth:`Score.of`.
    """
    values = {**values, UNPARSED.name: share(labels, None)}
    return Score.of(doc, responses, groups, labels=tuple(labels), score=share(labels, right), values=values, **fields)
