r"""Reading a judge's reply: which rating it states, if it states one without doubt.

The form that the prompt asks for decides: ``[[7]]``, ``rating=2`` or an object with a score. All statements in it must
have one value, which is on offer, and one must be the judge's own: neither quoted nor told of another. Without one, the
next form counts, then ``Rating: 7``, then a number alone on the last line. Any other reply is asked again.
"""

import json
import re
from contextlib import suppress
from functools import lru_cache
from itertools import chain, islice

from culture_tasks.judges.rubric.verdicts import OfferedScale, Reading
from culture_tasks.text import without_reasoning

_NOT_OFFERED = -1  # a fraction, a range, another scale's value, …
_MOST = 50  # statements, and objects, that are looked at
_FOLDED = dict(zip("［］【】：＝／（），", "[][]:=/(),", strict=True))  # one character for one, so that places stay
_FOREIGN = "bewertung|calificación|оценка|التقييم|الدرجة|评分|得分|分数|評分|評価|スコア|점수|평점|평가"
_LABEL = rf"(?:(?<![^\W_])(?:rating|score)|{_FOREIGN})"
_MARKS = r"[ \t*_`'\"“”|$\\]{0,6}"
_END = r"[\])}*_]{0,6}(?:\s?\(?(?:/|out of)\s?[\[*]{0,4}(?P<full>\d{1,4}))?[\])}]{0,2}"  # such as "/10"
_NUMBER = rf"(?P<value>[-+~≈]?\d{{1,6}}(?:[.,]\d{{1,6}})*){_END}"
_WORD = rf"{_LABEL}(?: ?\([^()\n]{{1,40}}\))?{_MARKS}"
_GIVEN = r"i(?: would|['’]d)? (?:rate|give) [^.\n\d]{0,40}?|(?:actually|correction|make (?:it|that))[,:]? "
_BRACKETED = rf"\[\[\s{{0,3}}(?:{_WORD}[:=]\s?)?(?P<value>[^\[\]\n]{{0,9}}?\d[^\[\]\n]{{0,9}})\]\]{_END}"
_FORMS = {
    "[[": rf"(?:{_WORD}[:=是는은]?{_MARKS})?{_BRACKETED}",
    "=": rf"{_WORD}={_MARKS}{_NUMBER}",
    "{": rf"(?:[\"'“]|[{{,]\s?){_LABEL}[\"'”]?\s{{0,3}}:\s{{0,3}}[\"'“]?{_NUMBER}(?=[\"'”]?\s{{0,9}}(?:,(?!\d)|}}))",
    "plain": rf"(?:{_WORD}(?:(?:is|of)\b ?:?|[:=是は])[ \t]{{0,3}}|(?<![^\W\d_])(?:{_GIVEN})){_MARKS}{_NUMBER}",
    "alone": rf"^[\s*_`#$\\]{{0,9}}(?:boxed{{)?{_NUMBER}[\s*_`$}}.]{{0,9}}\Z",  # such as "7" or "**7/10**"
}
_PATTERNS = {form: re.compile(pattern, re.IGNORECASE | re.MULTILINE) for form, pattern in _FORMS.items()}
_USUAL = re.compile(r"(?:rating=|Rating: \[\[(?=\d+\]\]))(\d+)(?:\]\])?")  # a last line that is as asked for
# What is in every statement, at its beginning or up to two characters after that.
_HINTS = re.compile(rf"\[\[|rating|score|{_FOREIGN}|i(?= would|['’]d| rate| give)|actually|correction|make (?:it|that)")
_WHOLE = re.compile(r"\s*(\d{1,2})(?:[.,]0+)?\s*(?:(?:/|out of)\s*(\d+)\s*)?")  # such as "7" and "7.0/10"
_MORE = re.compile(r"[%+±?a-zA-Z\d]|\s?(?:[-–~/]|to|or|and|至|或)\s?[\[(]{0,2}\d")  # what makes it another number
_OPENING, _WORDS = re.compile(r"\{"), re.compile(r"[^\W\d_]+")
_DECODER = json.JSONDecoder(object_pairs_hook=list, strict=False)
_SENTENCE_ENDS = re.compile(r"[.!?](?<!e\.g\.)(?<!i\.e\.)['\"’”)*_\]`]{0,4}\s|[。！？؟।]")
_CLAUSE_ENDS = re.compile(r"[,;:(—–→،؛、]|\s-\s")
_BLANK = " \t\n*_`#|\"“'-"
# The only Latin words between the beginning of a clause and a rating that is the judge's own.
_OWN = re.compile(
    "a|accordingly|an|and|as|assign(?:ed|ing|s)?|at|award|be|candidate|answer|assistant|conclusion|consequently|d|"
    "daher|deserves|donc|earns|finally|final|for|gets|giv(?:en?|es|ing)|grade|hence|i|in|is|it|judge|lead(?:s|ing)|ll|lo|"
    "making|merits|my|of|overall|por|rat(?:ed?|ings?)|receives|response|result(?:s|ing)|s|score|so|summary|tanto|that|the|"
    "then|therefore|this|thus|to|warrants|we|which|will|with|would"
)
# What a line speaks of that introduces the judge's own rating by a colon; words with which it tells of another's text.
_GRADING = re.compile(
    rf"(?i){_LABEL}|\brat(?:e|es|ed)\b|scor|grad|evaluat|assess|judg|verdict|correct|match|conclu|품질|(?:the|my) json"
)
_TOLD = re.compile(
    r"(?i)\b(?:sa(?:y|ys|id)|claim|stat(?:es|ed|ing)|writ|wrote|contain|includ|ask|demand|instruct|tell|told|inject|quot"
    r"|output|reads?\b|text|itself|own\b|append|end(?:s|ed|ing)? (?:with|in)|tr(?:y|ies|ied)|attempt|if (?:it|the)|"
    r"unless|dit|dice|afirma|sagt|initial|at first|example|draft|(?:candidate|answer|response|assistant)(?: is)?$)|"
    r"初步|声称|写|说|称|書|言|يقول|تقول|كتب|라고|주장"
)
# What may follow a rating on its line: nothing, punctuation, a reason, another sentence, a word of a script but Latin.
_NEXT = r"$|[\n.,;:!)。，、—–(<-]|(?!라고|と書|という)[^\W\da-z_]|because|since|as |for "
_AFTER = re.compile(rf"[\])}}*_`'\"’”」』|$ \t]{{0,9}}(?:{_NEXT})")


def read_rating(reply: str, scale: OfferedScale) -> Reading | None:
    """Reads a rating in the form that the prompt asked for or a plain one; None where one would ask again."""
    text = without_reasoning(reply).strip()
    before, _, last = text.rpartition("\n")
    if (usual := _USUAL.fullmatch(last)) and reply.isascii() and len(text) == len(reply.strip()):
        lead = before.rstrip(_BLANK)
        if not lead.endswith(tuple(":,;({")) and not _HINTS.search(lead.lower()):  # nothing else can be a statement
            value = _offered(usual[1], scale)
            return None if value == _NOT_OFFERED else Reading(value, before.strip())
    stated = {form: _statements(text, form, scale) for form in ("[[", "=", "{", "plain")}
    first = ["{"] if scale.label == "score" or text.startswith(("{", "```json")) else []
    form = next((form for form in (*first, *stated) if stated[form]), "alone")
    statements = stated.pop(form) if form != "alone" else _statements(text, form, scale)
    own = [statement for statement in statements if _is_own(text, *statement)]
    if not own or len(statements) == _MOST:
        return None
    start, end, _, reasons = own[-1]
    values = {value for _, _, value, _ in statements}
    others = [s for s in chain(*stated.values()) if s[0] > end or not set(":=：]").isdisjoint(text[s[0] : s[1]])]
    values |= {s[2] for s in others if s[2] not in values and _is_own(text, *s)}
    if text != reply.strip() and "\0" not in without_reasoning(f"\0{reply}"):
        values |= {s[2] for s in _statements(reply, form, scale)}  # a mark, perhaps quoted, hides the judge's own
    if len(values) > 1 or _NOT_OFFERED in values:
        return None
    return Reading(values.pop(), (text[:start] + text[end:] if reasons is None else reasons).strip())


def _statements(text: str, form: str, scale: OfferedScale) -> list[tuple[int, int, int, str | None]]:
    """Returns where a text states ratings in a form, the judge's and others', their values, and an object's reasons."""
    statements: list[tuple[int, int, int, str | None]] = []
    if form not in ("plain", "alone") and form not in _hints(text)[0]:
        return statements
    for opening in islice(_OPENING.finditer(text), _MOST if form == "{" else 0):
        if text[start := opening.start()] != "{":
            continue  # inside of an object
        with suppress(ValueError, RecursionError):
            pairs, end = _DECODER.raw_decode(text, start)
            fields = [(str(key).lower(), str(value)) for key, value in pairs if isinstance(value, str | int | float)]
            reasons = next((value for key, value in fields if key in ("reason", "rationale", "explanation")), "")
            statements += [(start, end, _offered(v, scale), reasons) for k, v in fields if k in ("rating", "score")]
            text = text[:start] + " " * (end - start) + text[end:]
    (folded, hints), end = _hints(text), 0
    starts = [line.end() for line in re.finditer(r"\A|\n", folded)] if form == "alone" else hints
    for start in starts:
        if start < end or not (match := _PATTERNS[form].match(folded, start)):
            continue
        end = match.end()
        number = f"{match['value']}/{match['full']}" if match["full"] else match["value"]
        value = _NOT_OFFERED if _MORE.match(folded, end) else _offered(number, scale)
        if form != "alone" or not re.search(rf"(?m)^[^\w\n]*({value - 1}[.):]|\d+\s*$)", folded[:start]):
            statements.append((start, end, value, None))
    return statements[:_MOST]


@lru_cache(maxsize=2)
def _hints(text: str) -> tuple[str, list[int]]:
    """Returns a text with its foreign marks folded, and where statements may begin: the patterns are slow elsewhere."""
    folded = text if text.isascii() else re.sub(f"[{''.join(_FOLDED)}]", lambda mark: _FOLDED[mark[0]], text)
    lowered = folded.replace("İ", "i").lower()  # the only letter that would become two
    places = [hint.start() for hint in _HINTS.finditer(lowered)]
    return folded, sorted({start for place in places for start in range(max(0, place - 2), place + 1)})


def _offered(number: str, scale: OfferedScale) -> int:
    """Returns the rating that a number is, :data:`_NOT_OFFERED` for any other text."""
    match = _WHOLE.fullmatch(number)
    value = int(match[1]) if match and match[2] in (None, str(scale.highest)) else _NOT_OFFERED
    return value if scale.lowest <= value <= scale.highest else _NOT_OFFERED


def _is_own(text: str, start: int, end: int, _value: int, reasons: str | None) -> bool:
    """Whether nothing says that a rating is quoted, supposed or another's."""
    before, after = text[:start], text[end:]
    line, is_cut = before[before.rfind("\n") + 1 :], "}" not in after
    if line.lstrip().startswith(">") or (reasons is None and ((is_cut and "{" in line) or not _AFTER.match(after))):
        return False
    for opening, closing in (("```", "```"), *('""', "“”", "「」", "『』", "«»")):
        count = before.count(opening)
        if closing in after and (count % 2 if opening == closing else count > before.count(closing)):
            before, _, inside = before.rpartition(opening)
            if inside.strip(_BLANK + "{[") not in ("", "json") or before.rstrip(_BLANK)[-1:] not in ":：":
                return False  # neither is the quotation all of the reply nor does a colon introduce it
            line = ""
    last = _CLAUSE_ENDS.split(_SENTENCE_ENDS.split(line)[-1])[-1]
    words = _WORDS.findall(last.lower())
    if not all(map(_OWN.fullmatch, filter(str.isascii, words))) or _TOLD.search(" ".join(words)):
        return False
    lead = before[: len(before) - len(last)].rstrip(_BLANK)
    sentence = _SENTENCE_ENDS.split(lead[lead.rfind("\n") + 1 :])[-1]
    is_told = lead.endswith((":", "：") if words else tuple(":：,;(—–")) and _TOLD.search(sentence)
    return not is_told and (not lead.endswith((":", "：")) or bool(_GRADING.search(sentence)))
