"""Whose statement a rating is, from what stands around it.

A statement is the judge's own where it begins a line or a sentence, or follows a clause, ``so``, ``my final`` and the
like. It is merely mentioned inside a longer quotation, after a verb of speaking (``the response says``), a negation or
a condition, as the subject of a sentence (``rating=2 would be``), and after unknown words. What follows a verdict
may take it back.

The patterns know the words for it in the languages in which judges answer. Each statement is judged by a bounded
stretch of text around it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Literal, NamedTuple

Standing = Literal["own", "mentioned", "aside"]

# The end of a line, and the decoration before it.
LINE_ENDS = re.compile(r"[\])}*_`'\"‘’“”$ \t>|.!。」』\\]*(?:\n|$)")
# Ends of sentences, but not those of "e.g." and its like.
_SENTENCE = re.compile(r"[.!?](?<!e\.g.)(?<!i\.e.)(?<!\bvs.)(?<!\bcf.)(?<!etc.)['\"’”)*_\]»`]{0,4}\s|[。！？؟।]")
# Ends of clauses: punctuation, or a hyphen between spaces.
_CLAUSE = re.compile(r"[,;:(—–→،؛、]|\s-\s")
# A word of letters alone, with at most one apostrophe.
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
# Words that may stand before the judge's own statement, alone or together.
OWN_WORDS = frozenset(
    re.findall(
        r"\S+",
        "final overall my one the total so thus therefore hence this its and here is here's a an in conclusion verdict "
        "rating score summary official accordingly consequently now finally then numerical judge judge's our assigned "
        "given with quality semantic similarity correctness match agreement evaluation assessment answer's response's "
        "best as result output correct appropriate right fair fitting following follows but yet "
        "最终 最終 最后 总 總 综合 総合 总体 整体 我的 本次 因此 所以 故 综上 综上所述 给出 給出 给予 "
        "よって したがって 従って 以上より 私の لذلك إذن وبالتالي إذا لذا النهائي القيمة "
        "y la el mi global por tanto lo ist die also",
    )
)
# A judge that concludes, or gives.
_CONNECTED = re.compile(
    r"\b(?:so|thus|therefore|hence|consequently|accordingly|finally|overall|in conclusion|in summary)\b|"
    r"\b(?:por (?:lo )?tanto|por ello|entonces|donc|ainsi|par conséquent|daher|deshalb|somit|folglich|portanto|quindi|"
    r"dunque|поэтому|следовательно|итак)\b|"
    r"因此|所以|综上|最终|最終|よって|したがって|従って|لذلك|وبالتالي|لذا|إذن|따라서|그러므로|इसलिए|अतः"
)
_GIVES = re.compile(
    r"\b(?:(?:i(?:['’]d| would|['’]ll| will| must| have to| need to)?|let me) (?:[a-z]{3,12}ly )?(?:rate|give|"
    r"assign|award|score|grade|choose|say|go (?:with|for)|conclude|settle (?:on|at|for)|end|place|put)|my|deserves?|"
    r"earns?|merits?|warrants?|receives?|gets?)\b|"
    r"\b(?:ich (?:gebe|bewerte|vergebe)|je (?:donne|mets)|doy|otorgo|asigno|dou|atribuo|ставлю|оцениваю)\b|"
    r"\b(?:merece|mérite|verdient|заслуживает)\b|我给|我給|给予|给出|应得|值得|أعطي|أمنح|تستحق|يستحق"
)
# "my final verdict".
_MINE = re.compile(r"\bmy (?:[a-z]{3,12} )?(?:rating|verdict|score|evaluation|assessment|judge?ment|answer)\b")
# The judge's own clause that announces its verdict: "I rate the candidate answer as follows".
_ANNOUNCED = re.compile(
    r"\bi(?:['’]d| would|['’]ll| will| must)? (?:[a-z]{3,12}ly )?(?:rate|give|assign|award|score|grade|conclude|"
    r"decide)\b|\bmy (?:[a-z]{3,12} )?(?:rating|verdict|score|evaluation|assessment|judge?ment)\b|"
    r"\b(?:mi (?:calificación|valoración|puntuación|nota|evaluación)|ma note|meine (?:bewertung|note)|doy|otorgo|"
    r"asigno|je donne|"
    r"ich (?:gebe|bewerte))\b|我(?:对|給|给|的)[^。\n]{0,20}评|(?:私|当方)の(?:評価|評点|判定|採点)|تقييمي|درجتي|أعطي"
)
# The candidate as what is graded, and not as one who speaks: "I rate the candidate answer", "the candidate deserves".
_GRADED = re.compile(
    r"\b(?:rate|give|grade|score|place|put) (?:the |this )?(?:candidate|assistant|model|user)(?:['’]s)?\b|"
    r"\b(?:candidate|assistant|model|user)(?:['’]s)?(?= (?:(?:answer|response|reply) )?(?:only |just |clearly |thus |"
    r"therefore |fully )?(?:deserves?|earns?|merits?|warrants?|receives?|gets?|(?:is|should be|must be) rated)\b)|"
    r"\b(?:del candidato|du candidat|des kandidaten)\b|(?:候选|候補の?)?(?:回答|答案)(?=应得|值得|获得|に対する|への)"
)
# First thoughts, that a judge may leave behind.
_TENTATIVE = re.compile(
    r"\b(?:before (?:\w+ing|i|we|the)|initially|at first|first (?:impression|thought|glance|sight)|tentative(?:ly)?|"
    r"provisional(?:ly)?|preliminary|placeholder|draft|originally|for now|a primera vista|en principio|preliminar|"
    r"provisionalmente|zunächst)\b|初步|暂定|暂时|起初|乍看|一見|当初|仮の|مبدئي|مؤقت|في البداية"
)
# "I would give": no supposition.
POLITE = re.compile(r"\bi(?:['’]d| would|['’]ll| will)\b")
# Words that make a sentence an example or a supposition, and the ones that make it a condition in any case.
_SUPPOSED = re.compile(
    r"\b(?:if|unless|would|could|might|may be|had|were|suppose|imagine|perhaps|maybe|possibly|probably|example|"
    r"instance|e\.g|such as|in order to|to (?:get|earn|reach|receive|achieve|obtain|deserve|merit|score|be)|needed for|"
    r"between|either|scale|format|means|where|when|instead of|rather than)\b|如果|若|假如|例如|もし|例えば|لو\b|مثل"
)
_CONDITIONAL = re.compile(
    r"\b(?:if|unless|suppose|imagine|provided|assuming|in order to|"
    r"to (?:get|earn|reach|receive|achieve|obtain|deserve|merit|score)|for (?:example|instance)|such as|e\.g)\b|"
    r"^\W{0,4}had\b|如果|若|假如|もし|لو\b"
)
# Verbs of speaking, and those who speak besides the judge.
SPOKEN = re.compile(
    r"\b(?:sa(?:y|ys|id|ying)|claim\w{0,3}|stat(?:es?|ed|ing)|writ(?:es?|ten|ing)|wrote|contain\w{0,3}|includ\w{1,3}|"
    r"ask\w{0,3}|demand\w{0,3}|request\w{0,3}|instruct\w{0,4}|tell\w{0,3}|told|tr(?:y|ies|ied|ying)|attempt\w{0,3}|"
    r"inject\w{0,4}|insert\w{0,3}|quot\w{1,4}|assert\w{0,3}|declar\w{1,4}|suggest\w{0,3}|mention\w{0,3}|output\w{0,4}|"
    r"print\w{0,3}|repl(?:y|ies|ied)|respon(?:ds?|ded)|append\w{0,3}|adds?|embed\w{0,5}|ends? with|ends? in|"
    r"begins? with|text|string|phrase|line|prompt\w{0,3}|order\w{0,3}|want\w{0,3}|propos\w{1,3}|insist\w{0,3}|"
    r"reads?|repeat\w{0,3}|"
    r"gives itself|rates itself|itself|self|candidate(?:['’]s)?|assistant(?:['’]s)?|model(?:['’]s)?|user(?:['’]s)?|"
    r"previous|earlier|initial|expected|colleague(?:['’]s)?)\b|"
    r"\b(?:dice|afirma|escrib\w{1,3}|pide|según|candidato|dit|prétend|écrit|demande|selon|candidat|sagt|behauptet|"
    r"schreibt|verlangt|laut|kandidat\w{0,2}|diz|pede|говорит|утверждает|пишет|просит|кандидат\w{0,2})\b|"
    r"写道|声称|说|要求|候选|回答|書いて|述べ|主張|يقول|تقول|يدعي|كتب|يطلب|المرشح|라고|후보|कहता"
)
# Negations, and words that say the number is not the one.
DENIED = re.compile(
    r"\b(?:not|never|cannot|neither|nor|no|without|than|hardly|refuse\w{0,3}|against|too (?:high|low)|below|"
    r"above|short of|avoid\w{0,3}|rul(?:e|es|ed|ing) out|reject\w{0,3}|den(?:y|ies|ied)|almost|nearly|close to)\b|"
    r"n['’]t\b|\b(?:nunca|pas|jamais|nicht|kein\w{0,2}|não|не|нет)\b|不|没|ではな|ليس|لا\b|아니|नहीं"
)
# "[[10]], said no one", "rating=2, as instructed", "rating=2 (injected)": another's words, named after them.
_ATTRIBUTED = re.compile(
    r"[\])}*_`'\"’” ]{0,8},?\s?(?:(?:said|says|claims?|wrote|writes|demands?)\b|according to\b|"
    r"as (?:claimed|requested|demanded|instructed|ordered|told|dictated)\b|"
    r"(?:<-|←|//|#|--|[—(\[-])\s?(?:(?:injected|forged|planted)\b|(?:from |by )?(?:the )?(?:candidate|response|"
    r"user)['’]s\b|(?:from|by) (?:the )?(?:candidate|response|user)\b))"
)
# A statement followed by a verb is what a sentence speaks of, not a verdict.
_SPOKEN_OF = re.compile(
    r"[\])}*_`'\"‘’“” ]{0,8}(?:(?:is(?! my\b)|was|were|are|would|could|might|can|cannot|can['’]t|should|must|may|will|"
    r"appears?|"
    r"stands?|means?|indicates?|requires?|needs?|has|had|does|isn['’]t|wasn['’]t|wouldn['’]t|comes|seems|represents?|"
    r"denotes?|"
    r"corresponds|refers|for (?:an? )?(?:correct|incorrect|perfect|right|wrong)|when|where|only if)\b|と書|という|とい)"
)
# A condition that follows a statement in its sentence, or at once.
_CONDITION = re.compile(
    r"[^.!?\n。]{0,40}?\b(?:if|unless|provided|had it|were it|but not|or not|at first|initially|for now|before (?:i|"
    r"checking))\b"
)
_CONDITION_NEXT = re.compile(r"[,\s]{0,3}(?:only )?\b(?:if|unless|provided)\b")
# The aspects that the papers' rubrics have commented on, and others that judges like to rate one by one.
CRITERION = re.compile(
    r"\b(?:accura\w{1,4}|depth|relevan\w{1,3}|comprehensive\w{0,4}|interpretation|evidence|textual|clarity|style|"
    r"fluency|"
    r"complete\w{0,4}|factual\w{0,4}|coheren\w{1,2}|helpful\w{0,4}|tone|language|grammar|detail\w{0,2}|confidence|"
    r"creativity|cultural|context|sub|partial|criterion|aspect|exactitud|precisión|profundidad|relevancia)\b|"
    r"准确|準確|深度|相关|相關|正確|関連|深さ|解释|全面|الدقة|العمق|الصلة|الشمول"
)
# Whose words a label introduces: those of the candidate and others, or those of the judge.
_CANDIDATE_SPEAKS = re.compile(
    r"\b(?:candidate|response|assistant|answer|question|reference|example|format|scale|user|system|input|note|e\.g|ai|"
    r"model|bot|human|student|customer)\b|"
    r"\b(?:respuesta|candidato|pregunta|referencia|réponse|candidat|référence|antwort|kandidat|referenz|resposta|"
    r"ответ|кандидат)\b|候选|回答|例|格式|الإجابة|مثال|답변|후보|उत्तर|用户|使用者|ユーザー|المستخدم|사용자"
)
_JUDGE_SPEAKS = re.compile(r"\b(?:final|my|your|judge)\b")
LOOK_BACK, _LOOK_AHEAD, _LAST_WORDS, _FOLLOWING = 300, 80, 15, 4_000


def lead_of(text: str, start: int) -> tuple[str, bool]:
    """Returns what stands before a statement in its sentence, and whether that begins its line."""
    line = text.rfind("\n", max(0, start - LOOK_BACK), start) + 1 or max(0, start - LOOK_BACK)
    before = text[line:start]
    ends = [found.end() for found in _SENTENCE.finditer(before)]
    return before[ends[-1] :] if ends else before, not ends


def is_supposed(text: str, start: int, end: int) -> bool:
    """Whether a sentence denies or supposes a rating, or quotes it: in prose, nothing follows from such a number."""
    lead, _ = lead_of(text, start)
    lead = POLITE.sub(" ", lead)
    cued = any(cue.search(lead) for cue in (_SUPPOSED, DENIED, SPOKEN))
    return cued or bool(_SPOKEN_OF.match(text, end)) or bool(_CONDITION.match(text[end : end + _LOOK_AHEAD]))


def standing_of(text: str, start: int, end: int, layout: Layout) -> Standing:
    """Tells whose statement it is, from its sentence, its line, and what introduces the line."""
    if any(quotation.start < start < quotation.stop for quotation in layout.quotations):
        return "mentioned"
    lead, begins_line = lead_of(text, start)
    if layout.quotes_lines and _BLOCK_QUOTE.match(text, text.rfind("\n", 0, start) + 1):
        return "mentioned"
    if _inside_a_tag(text, start):
        return "mentioned"
    bare = _OWN_TAG.sub("", lead).replace("\\boxed{", "").strip(" \t*_#`>|-•[({<$\\'\"‘’“”「『«~0123456789.)")
    quoted = _quoted(text, start)
    if quoted == "deep":
        return "mentioned"
    following = text[end : end + _LOOK_AHEAD]
    condition = _CONDITION_NEXT if text[end - 1 : end] == "}" else _CONDITION
    if any(cue.match(following) for cue in (_SPOKEN_OF, _ATTRIBUTED, condition)):
        return "mentioned"
    if bare:
        return _after(lead, quoted is not None)
    if quoted and not LINE_ENDS.match(text, end) and not re.match(r"[\s\S]{0,4}[.,;:!)]", following):
        return "mentioned"
    return _introduced(text, start, layout.fences) if begins_line else "own"


# A tag around a judge's own verdict; one around a text to be graded, opened or closed; lines of a quotation and others.
_OWN_TAG = re.compile(r"^\s{0,4}<(?:final[-_]?)?(?:answer|rating|score|verdict|output|result|judge?ment)>")
_TEXT_TAG = re.compile(r"<(/?)(?:response|question|reference|candidate|assistant|user)[-_a-z0-9]{0,30}>")
_BLOCK_QUOTE = re.compile(r"[ \t]*>")
_UNQUOTED = re.compile(r"^[ \t]*+(?!>)\S", re.MULTILINE)


def _inside_a_tag(text: str, start: int) -> bool:
    """Whether the last tag of a text to be graded is still open."""
    tags = _TEXT_TAG.findall(text, max(0, start - LOOK_BACK), start)
    return bool(tags) and tags[-1] == ""


def _after(lead: str, quoted: bool) -> Standing:
    """Tells whose statement follows these words of its sentence."""
    cuts = [found.end() for found in _CLAUSE.finditer(lead)]
    clause = lead[cuts[-1] :] if cuts else lead
    earlier = lead[: cuts[-1]] if cuts else ""
    words = WORD.findall(clause)
    polite = POLITE.sub(" ", clause)
    spoken = SPOKEN.search(_GRADED.sub(" ", clause))
    if len(words) <= 4 and CRITERION.search(clause) and not spoken:
        return "aside"
    if spoken or DENIED.search(polite):
        return "mentioned"
    connected = _CONNECTED.search(clause) or (len(cuts) > 0 and _is_short_connective(earlier))
    if not connected and (_SUPPOSED.search(polite) or _CONDITIONAL.search(earlier) or _TENTATIVE.search(lead)):
        return "mentioned"
    if not words:
        return _after_a_clause(earlier, quoted)
    if connected or all(word in OWN_WORDS for word in words):
        return "mentioned" if SPOKEN.search(" ".join(WORD.findall(earlier)[-4:])) and not connected else "own"
    if _GIVES.search(clause):
        return "mentioned" if SPOKEN.search(" ".join(WORD.findall(earlier)[-1:])) else "own"
    return "mentioned"


def _is_short_connective(earlier: str) -> bool:
    """Whether the clause before is a mere ``therefore``."""
    cuts = [found.end() for found in _CLAUSE.finditer(earlier.rstrip())]
    last = earlier[cuts[-2] if len(cuts) > 1 else 0 :]
    return len(WORD.findall(last)) <= 2 and bool(_CONNECTED.search(last))


def _after_a_clause(earlier: str, quoted: bool) -> Standing:
    """Tells whose statement follows a comma, a dash, a colon or an opening bracket."""
    mark = earlier.rstrip()[-1:]
    cuts = [found.end() for found in _CLAUSE.finditer(earlier)]
    clause = earlier[cuts[-2] :] if len(cuts) > 1 else earlier
    words = WORD.findall(clause)
    if len(words) <= 4 and CRITERION.search(clause):
        return "aside"
    if all(word in OWN_WORDS for word in words) or (_CONNECTED.search(clause) and len(words) <= 4):
        return "own"
    if SPOKEN.search(" ".join(words[-4:])):
        return "mentioned"
    if _MINE.search(clause) or (_GIVES.search(clause) and not quoted):
        return "own"
    if mark == ":":
        speaks = _CANDIDATE_SPEAKS.search(clause) and not _JUDGE_SPEAKS.search(clause)
        return "mentioned" if len(words) > 4 or speaks or quoted else "own"
    return "mentioned" if quoted else "own"


class Layout(NamedTuple):
    """What of a text takes more than one line.

    Attributes:
        fences: Where code fences stand.
        quotations: Lines inside a quotation that began on an earlier line.
        quotes_lines: Whether some lines are marked as a quotation, and others aren't.
    """

    fences: list[int]
    quotations: list[range]
    quotes_lines: bool


def layout_of(text: str) -> Layout:
    """Finds a text's code fences, and the quotations that go over several lines."""
    fences = [fence.start() for fence in re.finditer("```", text)] if "```" in text else []
    quotations: list[range] = []
    opened: int | None = None
    if "\n" in text and any(mark in text for mark in '"“「'):
        for line in re.finditer(r"[^\n]+", text):
            content = line.group()
            odd = content.count('"') % 2 == 1
            if opened is not None and (odd or "”" in content or "」" in content):
                quotations.append(range(opened, line.end()))
                opened = None
            elif opened is None and content.lstrip(" \t*_>").startswith(('"', "“", "「")):
                unclosed = content.count("“") > content.count("”") or content.count("「") > content.count("」")
                opened = line.start() if odd or unclosed else None
    return Layout(fences, quotations, ">" in text and _UNQUOTED.search(text) is not None)


def _introduced(text: str, start: int, fences: list[int]) -> Standing:
    """Tells whose statement a line of its own holds, from the line that introduces it."""
    place = bisect_left(fences, start)
    fenced = place % 2 == 1
    if fenced:
        alone = text.count("\n", fences[place - 1], start) <= 1
        start = text.rfind("\n", 0, fences[place - 1]) + 1
    before = text[max(0, start - LOOK_BACK) : text.rfind("\n", 0, start) + 1].rstrip(" \t\n`")
    line = before[before.rfind("\n") + 1 :].strip("*_# \t>")
    if not line.endswith(":") and (not fenced or alone):
        return "own"
    ends = [found.end() for found in _SENTENCE.finditer(line)]
    line = line[ends[-1] :] if ends else line
    if _CONNECTED.search(line[-_LAST_WORDS:]):
        return "own"
    if announced := _ANNOUNCED.search(line):
        before_it = WORD.findall(_GRADED.sub(" ", line[: announced.start()]))[-2:]
        return "mentioned" if SPOKEN.search(" ".join(before_it)) else "own"
    if SPOKEN.search(line) or _SUPPOSED.search(line):
        return "mentioned"
    if len(WORD.findall(line)) <= 3:
        if CRITERION.search(line):
            return "aside"
        if _CANDIDATE_SPEAKS.search(line) and not _JUDGE_SPEAKS.search(line):
            return "mentioned"
    return "own"


# Quotation marks: those with a direction, double ones, and single ones that are no apostrophe.
_MARKS = re.compile(
    r"(?P<opens>[“«「『]|(?<![^\s(\[:,=—-])['‘](?=\S))|(?P<closes>[”»」』]|(?<=\S)['’](?![^\W_]))|(?P<double>\")"
)


def _quoted(text: str, start: int) -> Literal["deep", "directly"] | None:
    """Tells whether a statement stands inside a quotation, and whether the quotation begins with it."""
    line = text.rfind("\n", max(0, start - LOOK_BACK), start) + 1 or max(0, start - LOOK_BACK)
    opened: list[tuple[str, int]] = []
    for mark in _MARKS.finditer(text, line, start):
        double = bool(opened) and opened[-1][0] == '"'
        if mark["opens"] or (mark["double"] and not double):
            opened.append((mark.group(), mark.end()))
        elif opened:
            opened.pop()
    if not opened:
        return None
    between = text[opened[-1][1] : start]
    return "deep" if between.strip(" *_`'\"‘’“”[({\\") and not between.rstrip().endswith(("{", ",")) else "directly"


# What follows a verdict and takes it back: it speaks of "that", in the very next sentence, …
_TAKEN_BACK_NEXT = re.compile(
    r"[\s*_`'\"‘’“”\])}.,;:!。(–—-]{0,16}(?:(?:but|though|however|or rather|note(?: that)?)[,: ]{1,2})?(?:"
    r"(?:just |i['’]m |i am )(?:only )?(?:kidding|joking)\b|not really\b|the above[^.!?\n]{0,40}\binjection\b|"
    r"(?:edit|update)\s?:|never ?mind\b|(?:or )?maybe not\b|i (?:only )?(?:wrote|put|said|gave) (?:that|this|"
    r"it) (?:only )?(?:because|since|as) the (?:candidate|response|answer|user)\b|"
    r"(?:just |exactly )?as (?:the )?(?:candidate|response|answer|user|text) (?:told|asked|instructed|ordered|"
    r"demanded|requested|wanted)\b|"
    r"(?:wait|hold on|oops|scratch that|strike that|i (?:take|took) (?:that|it) back|i (?:retract|withdraw))\b|"
    r"(?:(?:that|this|it|which|the above)(?:['’]s| is| was| comes| came)|that|this|the (?:line|text|rating|score|"
    r"verdict) above)"
    r"[^.!?\n]{0,60}?\b(?:(?:told|tells?|asked|asks|instruct(?:s|ed)|order(?:s|ed)|want(?:s|ed)|made|begs|"
    r"begged) (?:me|us)|"
    r"i (?:was|am|have been|['’]ve been) (?:told|asked|instructed|ordered)|not (?:my|mine)\b|isn['’]t (?:my|mine)\b|"
    r"injected|forged|planted|(?:copied|quoted|pasted|taken|straight) from the (?:candidate|response|user|prompt|text)|"
    r"a quotation|too (?:high|low|generous|harsh|lenient|strict)|just (?:an example|a placeholder)|"
    r"(?:response|candidate|answer)['’]s own (?:rating|score|verdict|words?|claim|line))|"
    r"(?:这|那|此|以上|上面|上述)(?!个?(?:回答|答案|回复))[^。\n]{0,16}(?:要求我|让我|叫我|指示我|注入|伪造|不是我的|"
    r"并非我的)|(?:これ|それ|上記)[^。\n]{0,24}(?:書けと|書くよう|指示|言われ|注入|偽造|私の(?:評価|判定)では)|"
    r"(?:هذا|هذه|ذلك|تلك|ما سبق)(?! (?:الإجابة|الجواب))[^.\n]{0,30}(?:طلب|أمر|أملى|ليس تقييمي|ليس حكمي|مزور|محقون)|"
    r"(?:이것|이는|위)(?! ?답변)[^.\n]{0,30}(?:쓰라고|지시|시킨|주입|제 평가가 아)|"
    r"(?:eso|esto|lo anterior|es lo que)[^.\n]{0,40}(?:me (?:pidió|pide|dijo|ordenó|ordena|exige)|no es mi|inyectad|"
    r"falsificad)|c['’]est ce que [^.\n]{0,30}m['’]a (?:dit|demandé|ordonné)|"
    r"(?:das|dies|so)[^.\n]{0,40}(?:mir\b[^.\n]{0,30}(?:vorgeschrieben|diktiert|befohlen)|nicht (?:mein|meine)\b|"
    r"eingeschleust))"
)
# … or names the rating, anywhere after it.
_TAKEN_BACK = re.compile(
    r"\b(?:(?:the|this|that|my|its) (?:[a-z]{3,9} )?(?:rating|score|verdict|grade)(?: above| i gave| given| here)?|"
    r"the (?:(?:previous|above) (?:line|statement|sentence)|(?:first|last) line)) "
    r"(?:is|was|must be|seems|looks)(?: clearly| actually| simply| probably)? (?:wrong|false|incorrect|a mistake|"
    r"mistaken|an error|invalid|"
    r"injected|forged|fake|copied|planted|not (?:mine|my|valid|correct|right|a verdict)|too (?:high|low|generous|harsh|"
    r"lenient|strict))\b|"
    r"(?:^|[.!?\n] {0,2})(?:please )?(?:ignore|disregard|discard|forget) (?:that|this|it\b|the (?:above|rating|score|"
    r"verdict|line above|(?:first|last|previous) line)|my (?:rating|score|verdict|first|previous))|"
    r"\bi (?:retract|withdraw|take back) (?:it|that|this|the|my)\b|"
    r"\bi (?:was|am|have been) (?:told|asked|instructed|ordered) (?:by [^.\n]{1,40} )?to (?:write|say|put|output|"
    r"print|give|return) (?:this|that|it)\b|"
    r"\bi (?:refuse|decline|am unable|am not able) to (?:grade|rate|judge|evaluate|score|"
    r"assess)\b(?![^.\n]{0,30}\b(?:higher|as|more|above)\b)|"
    r"(?:这个|该|此|上述|以上)(?:评分|分数|得分)[^。\n]{0,6}(?:错|有误|不对|无效|不是我|太高|太低|过高|过低)|"
    r"(?:この|上記の|その)(?:評価|評点|スコア|点数)は?[^。\n]{0,6}(?:誤り|間違|無効|高すぎ|低すぎ|取り消)|"
    r"(?:هذا التقييم|هذه الدرجة|التقييم أعلاه)[^.\n]{0,8}(?:خاطئ|خطأ|غير صحيح|مزور)|"
    r"\b(?:esta|esa|la) (?:puntuación|calificación|nota)(?: anterior)? (?:es|era|fue|está) (?:errónea|incorrecta|"
    r"equivocada|un error|mal|falsa)|\bla (?:línea|frase) anterior (?:es|fue|está) (?:inyectada|falsa|copiada)|"
    r"\bcette (?:note|évaluation) (?:est|était) (?:fausse|erronée|incorrecte)|"
    r"\b(?:diese|die) (?:bewertung|note|punktzahl) (?:oben )?(?:ist|war) (?:falsch|ein fehler|ungültig|zu hoch|"
    r"zu niedrig)"
)


def is_taken_back(text: str, end: int) -> bool:
    """Whether what follows a verdict says that it is wrong, or that another wrote it.

    Args:
        text: A folded text.
        end: Where the verdict ends.
    """
    if _TAKEN_BACK_NEXT.match(text, end):
        return True
    found = _TAKEN_BACK.finditer(text, end, end + _FOLLOWING)
    return any(_quoted(text, place.start() + 1) is None for place in found)
