r"""Finding the places of a reply that state a rating, and telling whose statement each one is.

A statement is a word for a rating, what links it to a value (``=``, ``:``, ``is``), and the value with what belongs
to it (``/10``, ``out of 10``); or ``[[7]]``, ``\boxed{7}``, ``I give it 7 out of 10``. Whose it is depends on what
stands around it. A statement is the judge's own where it begins a line or a sentence, or follows a clause, ``so``,
``my final`` and the like. It is merely mentioned inside a longer quotation, after a verb of speaking (``the response
says``), a negation or a condition, as the subject of a sentence (``rating=2 would be``), and after words that nothing
is known of.

The patterns know the words for it in the languages in which judges answer; digits, brackets and colons of every script
count. Each repetition is bounded, and each statement is judged by a bounded stretch of text around it, so that reading
takes linear time.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Literal, NamedTuple

NOT_OFFERED = -1
"""The value of a statement that is no value of the scale: a fraction, a range, another scale's value, …."""

MOST_LABELS = 1_000
"""A text with more words for a rating than this states none without doubt."""

Standing = Literal["own", "mentioned", "aside"]


class Scale(NamedTuple):
    """What a prompt offers.

    Attributes:
        lowest: Lowest rating.
        highest: Highest rating.
        label: The word that the prompt asks for before the rating.
    """

    lowest: int
    highest: int
    label: Literal["rating", "score"]


class Statement(NamedTuple):
    """A place that states a rating.

    Attributes:
        start: Where it begins.
        end: Where it ends.
        value: The rating, or :data:`NOT_OFFERED`.
        standing: Whether it is the judge's ``own``, a rating is ``mentioned``, or nothing follows from it (``aside``).
    """

    start: int
    end: int
    value: int
    standing: Standing


class _Folding(dict[int, str]):
    """Maps each character to one of its kind: compatibility forms and digits of any script to ASCII, to lower case.

    One character stays one character, so that places in the folded text are places in the reply. Marks of direction
    and other invisible characters become spaces.
    """

    def __missing__(self, code: int) -> str:
        mark = chr(code)
        plain = unicodedata.normalize("NFKC", mark)
        if (digit := unicodedata.decimal(mark, None)) is not None:
            plain = str(digit)
        elif unicodedata.category(mark) in ("Cf", "Zs", "Zl", "Zp"):
            plain = " "
        lower = plain.lower()
        self[code] = lower if len(lower) == 1 else mark
        return self[code]


_FOLDING = _Folding({ord("【"): "[", ord("】"): "]", ord("٫"): ".", ord("‑"): "-", ord("−"): "-"})
# Commands of LaTeX that only set type; blanked, and \boxed{ left to be found.
_TYPESETTING = re.compile(r"\\(?:text(?:bf|it|rm)?|math(?:bf|rm|it)?|bf|large|quad|,|;)(?![a-z])")


# Tags of HTML that begin a line, others that only set type, and a model's own marks between its channels.
_HTML = re.compile(
    r"</?(?:(?P<block>p|div|br|h[1-6]|li|ul|ol|tr|table|pre)|b|i|em|strong|span|u|code|td|th)(?: [^<>\n]{0,80})?/?>"
    r"|(?P<channel><\|[a-z_]{1,20}\|>)"
)


# A judge's own role, which begins the reply of a model that writes out the chat format.
_ROLE = re.compile(
    r"[\s*_#\[]{0,20}(?:assistant|judge|evaluator|grader|ai|助手|アシスタント|المساعد|"
    r"asistente)\s?[*_\]]{0,3}[:\n][*_]{0,3}"
)


def folded(reply: str) -> str:
    """Returns the reply in lower case, with ASCII digits and punctuation, no tags and no role before it.

    One character stays one character.
    """
    text = reply.lower() if reply.isascii() else reply.translate(_FOLDING)
    if "<" in text:
        text = _HTML.sub(lambda tag: ("\n" if tag["block"] or tag["channel"] else " ").ljust(len(tag.group())), text)
    if role := _ROLE.match(text):
        text = " " * role.end() + text[role.end() :]
    return _TYPESETTING.sub(lambda found: " " * len(found.group()), text) if "\\" in text else text


# Words for a rating. The first group is what prompts ask for; the last ones count where the judge gives its verdict.
_STRONG = (
    "rating|评分|得分|分数|打分|评级|評分|評級|分數|評価|評点|スコア|採点|点数|التقييم|تقييم|الدرجة|التصنيف|점수|평점|"
    "puntuación|calificación|bewertung|оценка|रेटिंग|अंक|امتیاز"
)
_WEAK = (
    "score|grade|verdict|evaluation|assessment|judge?ment|decision|conclusion|final answer|overall|final|total|"
    "note|nota|总体|总评|结论|النتيجة|結論|判定"
)
_DECORATION = r"[ \t*_`'\"‘’“”\])}]{0,6}"
_QUALIFIER_AFTER = r"(?:\s(?:النهائي|النهائية|الإجمالي|العام|final|global|general|correcta|adecuada|justa))?"
# What a rating is of, or on which scale, between its word and the link: "(1-10)", "for this response", "out of 10".
_SCOPE = (
    r"(?:(?P<scope>[*_]{0,3}[ \t]?\([^()\n]{1,60}\)|[ \t](?:for|of|on|out of|from)[ \t][^\n:=.!?()\[\]]{1,60}"
    r"(?=[*_]{0,3}(?:[:=]|[ \t]is[ \t]))|[ \t](?:here|aquí|ici|hier)(?=[ \t]))?)"
)
_FILLER = (
    r"(?:(?:a|an|the|thus|therefore|hence|clearly|definitely|still|only|just|exactly|set|at|to|solid|strong)\s){0,3}"
)
_LINK = (
    rf"(?:(?P<mark>{_DECORATION}(?::=|={{1,3}}|[:>|→⇒]|->|=>|[-–—](?=\s)|[是为為は]|هو|هي)\s{{0,4}})"
    rf"|(?P<heading>[*_#: \t]{{0,6}}\n(?:[=-]{{2,40}}\n)?\s{{0,4}})"
    rf"|(?P<verb>[*_]{{0,3}}\s{{1,3}}(?:is|was|are|as|of|at|to|equals|(?:should|would|will) be|set to|"
    rf"de|es|est|ist|mit)\s{{1,3}}{_FILLER})"
    rf"|(?P<gap>[*_]{{0,3}}(?:[ \t]|\][ \t]?)))"
)
_OPEN = r"(?P<open>[\s*_`'\"‘’“”\[({<$\\「『]{0,10}(?:\\boxed\{[ {]{0,3})?)"
_ABOUT = (
    r"(?P<about>[~≈≤≥±>]|(?:about|around|approximately|roughly|nearly|almost|at least|at most|less than|more than|"
    r"under|over|up to|below|above|close to|between|somewhere|not|either|maybe|perhaps|probably)\s)?\s?"
)
_ENGLISH = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_WORDS = {word: number for number, word in enumerate(_ENGLISH)}
_WORDS |= {word: number for number, word in enumerate("零一二三四五六七八九十")} | {"两": 2, "〇": 0}
_NUMBER_WORDS = "|".join(_WORDS)
_NUMBER = rf"(?P<number>[-+]?\d{{1,6}}(?:[.,]\d{{1,6}}){{0,3}}|(?:{_NUMBER_WORDS})(?![^\W_]))"
# What follows a word for a rating, or "[[" and "\\boxed{", up to the number.
_AFTER_LABEL = re.compile(_QUALIFIER_AFTER + _SCOPE + _LINK + _OPEN + _ABOUT + _NUMBER)
_AFTER_BRACKET = re.compile(_OPEN + _ABOUT + _NUMBER)
_BRACKETS = ("[[", "\\boxed{")
_LABELS = (*_BRACKETS, *_STRONG.split("|"), *_WEAK.replace("judge?ment", "judgment|judgement").split("|"))
_ASCII_LABELS = tuple(label for label in _LABELS if label.isascii())
_DIGIT = re.compile(r"[0-9]")
_PRIMARY = frozenset(_STRONG.split("|"))
# "I would give this response a 7", "it deserves 7": a verdict in prose, between giver and number no other number.
_GIVEN = re.compile(
    r"(?:\b|(?=我))(?:(?:我(?:会|將|将)?[给給打]|i(?:['’]d| would|['’]ll| will| can| must)? (?:[a-z]{3,12}ly |rather )?"
    r"(?:rate|give|score|assign|award|grade|say|place|put)\b"
    r"|ich (?:bewerte|gebe|vergebe)\b|je (?:donne|mets)\b|(?:le |yo )?(?:doy|otorgo|asigno)\b|dou\b)"
    r"(?P<what>[^.!?\n\d]{0,60}?)|(?:deserves?|earns?|merits?|receives?|gets?|scores?|rates?|warrants?|"
    r"(?:it|this|(?:the |this )?(?:candidate|answer|response))(?:['’]s| is| should be| must be) (?:rated|scored|graded)"
    r"(?: as| at| with)?)"
    rf"(?: only| just)?(?: an?)?(?: (?:rating|score) of)?)[\s*_`'\"“‘\[]{{0,6}}(?<![a-z]){_ABOUT}{_NUMBER}"
)
# "10点満点で7点", "满分10分，给7分".
_OUT_OF_FULL = re.compile(
    rf"(?:(?P<full>\d{{1,3}})[点點]満点(?:で|中|のうち)|满分(?:为|是)?(?P<full_marks>\d{{1,3}})分?[，,])"
    rf"[、,，]?\s?(?:给予|给|得|打)?\s?{_NUMBER}(?=[点點分])"
)
# "Correction: 7", "actually, make that 7": a number that takes the place of an earlier one, and ends its clause.
_CORRECTED = re.compile(
    r"\b(?:correction|actually|scratch that|wait|make (?:it|that)|i mean|on (?:second thought|reflection)|change[ds]? "
    rf"(?:it|this|my \w{{1,12}}) to|revised?(?: to)?)\b(?P<between>[^\n.\d]{{0,30}}?)\b{_NUMBER}"
    r"(?=[\])*_\s]{0,4}(?:[.!;,\n]|$))"
)

# What may follow a number: a unit, brackets, the end of its scale, another number.
_UNIT = re.compile(r"[ \t]?(?:分|点|點|점|points?\b|pts\b|درجات)")
_CLOSE = re.compile(r"[\])}*_`'\"‘’“”$ \t>|\\」』]{0,10}")
_OUT_OF = re.compile(
    r"\s?[\[(]?(?:/|out of|of|von|sur|de|من|满分|중)\s?(?:the |a )?[\[(*_{]{0,3}"
    rf"(\d{{1,6}}|(?:{_NUMBER_WORDS})(?![^\W_]))(?:\s?[分点點점]|\s(?:points?|punkten?|puntos|pontos)\b)?"
)
_RANGE = re.compile(
    r"(?:[,،]\s?|、)\d{1,3}(?=[,、]? ?(?:[,،、/]|or\b|and\b|and/or|或|または|أو|o\b|ou\b|oder\b)|[. ]{0,2}(?:\n|$))|"
    r"(?:[ \t]\d{1,2}){1,9}(?=[. ]{0,2}(?:\n|$))|\.{2,3}(?=\d)\d{1,3}|"
    r"(?:,?\s?(?:[-–—~]|\b(?:to|or|and|through|perhaps|maybe|possibly|almost|(?:or )?(?:even|rather))\b|"
    r"至|到|或|または|から|أو|إلى|\|)"
    rf"\s?[\[(*_'\"]{{0,3}}(?P<again>rating\s?[:=]?\s?)?(?P<other>\d{{1,6}}|(?:{_NUMBER_WORDS})(?![^\W_])))"
)
_OTHER_SCALE = re.compile(
    r"[^.\n]{0,20}\bscale (?:of|from) \d{1,3}\s?(?:[-–—]|to)\s?(\d{1,3})|[^.\n]{0,12}?(\d{1,3})[- ]point"
)
# "7?", "7 at best", "7 stars", "7 or so", "2/3 of the way": less than a plain value.
_HEDGED = re.compile(
    r"\s?(?:[?±]|\+/?-|(?:of|de|des|del|du|der|von|thirds?|halves|quarters?)\b|的?程度|左右|くらい|ほど|"
    r",?\s?(?:at (?:best|most|least)|or (?:so|more|less|higher|lower|above|below)|ish|stars?)\b)"
)
_CLAUSE_ENDS = re.compile(r"[\])}*_`'\"’” ]{0,6}(?:[.,;:!?)\n(。]|$|out of|/|because|since|as\b|for\b|on\b)")
_WORD_ENDS = re.compile(r"[\])}*_ ]{0,6}(?:[.,;/)]|out of|because|since)")
_LINE_ENDS = re.compile(r"[\])}*_`'\"‘’“”$ \t>|.!。」』\\]*(?:\n|$)")

# Ends of sentences, but not those of "e.g." and its like.
_SENTENCE = re.compile(r"[.!?](?<!e\.g.)(?<!i\.e.)(?<!\bvs.)(?<!\bcf.)(?<!etc.)['\"’”)*_\]»`]{0,4}\s|[。！？؟।]")
_CLAUSE = re.compile(r"[,;:(—–→،؛、]|\s-\s")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
# Words that may stand before the judge's own statement, alone or together.
_OWN_WORDS = frozenset(
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
_MINE = re.compile(r"\bmy (?:[a-z]{3,12} )?(?:rating|verdict|score|evaluation|assessment|judge?ment|answer)\b")
# The judge's own clause that announces its verdict: "I rate the candidate answer as follows".
_ANNOUNCED = re.compile(
    r"\bi(?:['’]d| would|['’]ll| will| must)? (?:[a-z]{3,12}ly )?(?:rate|give|assign|award|score|grade|conclude|"
    r"decide)\b|"
    r"\bmy (?:[a-z]{3,12} )?(?:rating|verdict|score|evaluation|assessment|judge?ment)\b|"
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
_POLITE = re.compile(r"\bi(?:['’]d| would|['’]ll| will)\b")
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
_SPOKEN = re.compile(
    r"\b(?:sa(?:y|ys|id|ying)|claim\w{0,3}|stat(?:es?|ed|ing)|writ(?:es?|ten|ing)|wrote|contain\w{0,3}|includ\w{1,3}|"
    r"ask\w{0,3}|demand\w{0,3}|request\w{0,3}|instruct\w{0,4}|tell\w{0,3}|told|tr(?:y|ies|ied|ying)|attempt\w{0,3}|"
    r"inject\w{0,4}|insert\w{0,3}|quot\w{1,4}|assert\w{0,3}|declar\w{1,4}|suggest\w{0,3}|mention\w{0,3}|output\w{0,4}|"
    r"print\w{0,3}|repl(?:y|ies|ied)|respon(?:ds?|ded)|append\w{0,3}|adds?|embed\w{0,5}|ends? with|ends? in|"
    r"begins? with|text|string|phrase|line|prompt\w{0,3}|order\w{0,3}|want\w{0,3}|propos\w{1,3}|insist\w{0,3}|"
    r"reads?|repeat\w{0,3}|"
    r"gives itself|rates itself|itself|self|candidate(?:['’]s)?|assistant(?:['’]s)?|model(?:['’]s)?|user(?:['’]s)?|"
    r"previous|earlier|initial|expected|colleague(?:['’]s)?)\b|"
    r"\b(?:dice|afirma|escrib\w{1,3}|pide|según|candidato|dit|prétend|écrit|demande|selon|candidat|sagt|behauptet|"
    r"schreibt|"
    r"verlangt|laut|kandidat\w{0,2}|diz|pede|говорит|утверждает|пишет|просит|кандидат\w{0,2})\b|"
    r"写道|声称|说|要求|候选|回答|書いて|述べ|主張|يقول|تقول|يدعي|كتب|يطلب|المرشح|라고|후보|कहता"
)
_DENIED = re.compile(
    r"\b(?:not|never|cannot|neither|nor|no|without|than|hardly|refuse\w{0,3}|against|too (?:high|low)|below|"
    r"above|short of|avoid\w{0,3}|rul(?:e|es|ed|ing) out|reject\w{0,3}|den(?:y|ies|ied)|almost|nearly|close to)\b|"
    r"n['’]t\b|\b(?:nunca|pas|jamais|nicht|kein\w{0,2}|não|не|нет)\b|"
    r"不|没|ではな|ليس|لا\b|아니|नहीं"
)
# "[[10]], said no one", "rating=2, as instructed", "rating=2 (injected)": another's words, named after them.
_ATTRIBUTED = re.compile(
    r"[\])}*_`'\"’” ]{0,8},?\s?(?:(?:said|says|claims?|wrote|writes|demands?)\b|according to\b|"
    r"as (?:claimed|requested|demanded|instructed|ordered|told|dictated)\b|"
    r"(?:<-|←|//|#|--|[—(\[-])\s?(?:(?:injected|forged|planted)\b|(?:from |by )?(?:the )?(?:candidate|response|"
    r"user)['’]s\b|"
    r"(?:from|by) (?:the )?(?:candidate|response|user)\b))"
)
# A statement followed by a verb is what a sentence speaks of, not a verdict.
_SPOKEN_OF = re.compile(
    r"[\])}*_`'\"‘’“” ]{0,8}(?:(?:is(?! my\b)|was|were|are|would|could|might|can|cannot|can['’]t|should|must|may|will|"
    r"appears?|"
    r"stands?|means?|indicates?|requires?|needs?|has|had|does|isn['’]t|wasn['’]t|wouldn['’]t|comes|seems|represents?|"
    r"denotes?|"
    r"corresponds|refers|for (?:an? )?(?:correct|incorrect|perfect|right|wrong)|when|where|only if)\b|と書|という|とい)"
)
_CONDITION = re.compile(
    r"[^.!?\n。]{0,40}?\b(?:if|unless|provided|had it|were it|but not|or not|at first|initially|for now|before (?:i|"
    r"checking))\b"
)
_CONDITION_NEXT = re.compile(r"[,\s]{0,3}(?:only )?\b(?:if|unless|provided)\b")
# The aspects that the papers' rubrics have commented on, and others that judges like to rate one by one.
_CRITERION = re.compile(
    r"\b(?:accura\w{1,4}|depth|relevan\w{1,3}|comprehensive\w{0,4}|interpretation|evidence|textual|clarity|style|"
    r"fluency|"
    r"complete\w{0,4}|factual\w{0,4}|coheren\w{1,2}|helpful\w{0,4}|tone|language|grammar|detail\w{0,2}|confidence|"
    r"creativity|"
    r"cultural|context|sub|partial|criterion|aspect|exactitud|precisión|profundidad|relevancia)\b|"
    r"准确|準確|深度|相关|相關|正確|関連|深さ|解释|全面|الدقة|العمق|الصلة|الشمول"
)
# Whose rating it is: "(theirs)", "of the reference".
_ANOTHERS = re.compile(r"\b(?:theirs?|self|previous|expected|initial|reference)\b")
_CANDIDATE_SPEAKS = re.compile(
    r"\b(?:candidate|response|assistant|answer|question|reference|example|format|scale|user|system|input|note|e\.g|ai|"
    r"model|bot|human|student|customer)\b|"
    r"\b(?:respuesta|candidato|pregunta|referencia|réponse|candidat|référence|antwort|kandidat|referenz|resposta|"
    r"ответ|кандидат)\b|"
    r"候选|回答|例|格式|الإجابة|مثال|답변|후보|उत्तर|用户|使用者|ユーザー|المستخدم|사용자"
)
_OF_THE_JUDGE = re.compile(r"\b(?:my|i)\b")
_JUDGE_SPEAKS = re.compile(r"\b(?:final|my|your|judge)\b")
_LOOK_BACK, _LOOK_AHEAD, _LAST_WORDS, _FOLLOWING = 300, 80, 15, 4_000


def statements_in(
    text: str, scale: Scale, unfinished: int | None = None, *, in_prose: bool = True
) -> Iterator[Statement]:
    """Finds every statement of a rating in a folded text.

    Args:
        text: The text, :func:`folded`.
        scale: What was offered.
        unfinished: Where an object begins that never ends: what stands in it was cut off, and is only mentioned.
        in_prose: Whether numbers that are given without a word for a rating count ("I give it 7").
    """
    layout = layout_of(text)
    spans: list[tuple[int, int]] = []
    last = 0
    labels = _labels_in(text)
    if len(labels) > MOST_LABELS:
        yield Statement(0, 0, NOT_OFFERED, "mentioned")
        return
    for start, label in labels:
        bracket = label in _BRACKETS
        match = (_AFTER_BRACKET if bracket else _AFTER_LABEL).match(text, start + len(label))
        if match is None or start < last or _inside_a_word(text, start, label):
            continue
        value, last = _value(text, match, scale, closes="]" if label == "[[" else "")
        if value is None:
            continue
        standing = standing_of(text, start, last, layout)
        if not bracket:
            weak = label not in _PRIMARY and label != scale.label
            standing = _as_linked(text, Statement(start, last, value, standing), match, weak=weak)
        if unfinished is not None and start >= unfinished and standing == "own":
            standing = "mentioned"
        yield Statement(start, last, value, standing)
        spans.append((start, last))
    outside = (text[end:start] for (_, end), (start, _) in pairwise([(0, 0), *spans, (len(text), 0)]))
    if in_prose and any(_DIGIT.search(part) for part in outside):
        yield from _given(text, scale, layout)
        yield from corrections_in(text, scale)


def _labels_in(text: str) -> list[tuple[int, str]]:
    """Finds the words for a rating, in their order; of far too many, the first ones."""
    places: list[tuple[int, str]] = []
    for label in _ASCII_LABELS if text.isascii() else _LABELS:
        at = text.find(label)
        while at >= 0 and len(places) <= MOST_LABELS:
            places.append((at, label))
            at = text.find(label, at + len(label))
    return sorted(places)


def _as_linked(text: str, found: Statement, match: re.Match[str], *, weak: bool) -> Standing:
    """Tells a statement's standing by its wording: of one criterion, in prose, by a word that nobody asked for."""
    if match["scope"] and _CRITERION.search(match["scope"]):
        return "aside"
    if match["scope"] and _ANOTHERS.search(match["scope"]):
        return "mentioned"
    if weak and (found.standing != "own" or match["gap"] or not _ends_its_clause(text, found.end)):
        return "aside"
    lead, _ = _lead(text, found.start)
    if match["mark"] and match["mark"].strip() == ">" and not lead.rstrip().endswith("<"):
        return "mentioned"  # no tag, but an inequality
    if match["verb"] and "would" in match["verb"] and not _OF_THE_JUDGE.search(lead):
        return "aside"
    in_prose = match["verb"] or match["gap"]
    if in_prose and found.standing == "mentioned" and _is_supposed(text, found.start, found.end):
        return "aside"
    return found.standing


def _given(text: str, scale: Scale, layout: Layout) -> Iterator[Statement]:
    """Finds ratings that are given in prose."""
    for match in _GIVEN.finditer(text):
        value, end = _value(text, match, scale)
        if value is None or not _ends_its_clause(text, end) or _CRITERION.search(match["what"] or ""):
            continue
        denied = _DENIED.search(_POLITE.sub(" ", match["what"] or ""))
        own = match["what"] is not None or standing_of(text, match.start(), end, layout) == "own"
        supposed = _is_supposed(text, match.start(), end)
        yield Statement(match.start(), end, value, "own" if own and not supposed and not denied else "aside")
    for match in _OUT_OF_FULL.finditer(text):
        value, end = _value(text, match, scale)
        if value is not None and int(match["full"] or match["full_marks"]) == scale.highest:
            yield Statement(match.start(), end, value, standing_of(text, match.start(), end, layout))


def corrections_in(text: str, scale: Scale, *, adjacent: bool = False) -> Iterator[Statement]:
    """Finds numbers that take the place of an earlier rating.

    Args:
        text: A folded text.
        scale: What was offered.
        adjacent: Whether no word may stand between ("correction: 7").
    """
    for match in _CORRECTED.finditer(text):
        value, end = _value(text, match, scale)
        distant = _WORD.search(match["between"])
        if value is not None and value != NOT_OFFERED and not (adjacent and distant):
            yield Statement(match.start(), end, value, "mentioned")


# What follows a verdict and takes it back: it speaks of "that", in the very next sentence, …
_TAKEN_BACK_NEXT = re.compile(
    r"[\s*_`'\"‘’“”\])}.,;:!。(–—-]{0,16}(?:(?:but|though|however|or rather|note(?: that)?)[,: ]{1,2})?(?:"
    r"(?:just |i['’]m |i am )(?:only )?(?:kidding|joking)\b|not really\b|the above[^.!?\n]{0,40}\binjection\b|"
    r"as (?:the )?(?:candidate|response|user|text) (?:told|asked|instructed|ordered|demanded|requested|wanted)\b|"
    r"(?:wait|hold on|oops|scratch that|strike that|i (?:take|took) (?:that|it) back|i (?:retract|withdraw))\b|"
    r"(?:(?:that|this|it|which|the above)(?:['’]s| is| was| comes| came)|that|this|the (?:line|text|rating|score|"
    r"verdict) above)"
    r"[^.!?\n]{0,60}?\b(?:(?:told|tells?|asked|asks|instruct(?:s|ed)|order(?:s|ed)|want(?:s|ed)|made|begs|"
    r"begged) (?:me|us)|"
    r"i (?:was|am|have been|['’]ve been) (?:told|asked|instructed|ordered)|not (?:my|mine)\b|isn['’]t (?:my|mine)\b|"
    r"injected|"
    r"forged|planted|(?:copied|quoted|pasted|taken|straight) from the (?:candidate|response|user|prompt|text)|"
    r"a quotation|"
    r"too (?:high|low|generous|harsh|lenient|strict)|just (?:an example|a placeholder)|"
    r"(?:response|candidate|answer)['’]s own (?:rating|score|verdict|words?|claim|line))|"
    r"(?:这|那|此|以上|上面|上述)[^。\n]{0,16}(?:要求我|让我|叫我|指示我|注入|伪造|不是我的|并非我的)|"
    r"(?:これ|それ|上記)[^。\n]{0,24}(?:書けと|書くよう|指示|言われ|注入|偽造|私の(?:評価|判定)では)|"
    r"(?:هذا|هذه|ذلك|تلك|ما سبق)[^.\n]{0,30}(?:طلب|أمر|أملى|ليس تقييمي|ليس حكمي|مزور|محقون)|"
    r"(?:이것|이는|위)[^.\n]{0,30}(?:쓰라고|지시|시킨|주입|제 평가가 아)|"
    r"(?:eso|esto|lo anterior|es lo que)[^.\n]{0,40}(?:me (?:pidió|pide|dijo|ordenó|ordena|exige)|no es mi|inyectad|"
    r"falsificad)|"
    r"c['’]est ce que [^.\n]{0,30}m['’]a (?:dit|demandé|ordonné)|"
    r"(?:das|dies|so)[^.\n]{0,40}(?:mir\b[^.\n]{0,30}(?:vorgeschrieben|diktiert|befohlen)|nicht (?:mein|meine)\b|"
    r"eingeschleust))"
)
# … or names the rating, anywhere after it.
_TAKEN_BACK = re.compile(
    r"\b(?:(?:the|this|that|my|its) (?:[a-z]{3,9} )?(?:rating|score|verdict|grade)(?: above| i gave| given| here)?|"
    r"the (?:previous|above|last|first) (?:line|statement|sentence)) "
    r"(?:is|was|must be|seems|looks)(?: clearly| actually| simply| probably)? (?:wrong|false|incorrect|a mistake|"
    r"mistaken|an error|invalid|"
    r"injected|forged|fake|copied|planted|not (?:mine|my|valid|correct|right|a verdict)|too (?:high|low|generous|harsh|"
    r"lenient|strict))\b|"
    r"(?:[.!?\n] {0,2})(?:please )?(?:ignore|disregard|discard|forget) (?:that|this|it\b|the (?:above|rating|score|"
    r"verdict|"
    r"line above|(?:first|last|previous) line)|my (?:rating|score|verdict|first|previous))|"
    r"\bi (?:retract|withdraw|take back) (?:it|that|this|the|my)\b|"
    r"\bi (?:was|am|have been) (?:told|asked|instructed|ordered) (?:by [^.\n]{1,40} )?to (?:write|say|put|output|"
    r"print|give|"
    r"return) (?:this|that|it)\b|"
    r"\bi (?:refuse|decline|am unable|am not able) to (?:grade|rate|judge|evaluate|score|"
    r"assess)\b(?![^.\n]{0,30}\b(?:higher|as|"
    r"more|above)\b)|"
    r"(?:这个|该|此|上述|以上)(?:评分|分数|得分)[^。\n]{0,6}(?:错|有误|不对|无效|不是我|太高|太低|过高|过低)|"
    r"(?:この|上記の|その)(?:評価|評点|スコア|点数)は?[^。\n]{0,6}(?:誤り|間違|無効|高すぎ|低すぎ|取り消)|"
    r"(?:هذا التقييم|هذه الدرجة|التقييم أعلاه)[^.\n]{0,8}(?:خاطئ|خطأ|غير صحيح|مزور)|"
    r"\b(?:esta|esa|la) (?:puntuación|calificación|nota)(?: anterior)? (?:es|era|fue|está) (?:errónea|incorrecta|"
    r"equivocada|"
    r"un error|mal|falsa)|"
    r"\bla (?:línea|frase) anterior (?:es|fue|está) (?:inyectada|falsa|copiada)|"
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


def statement_alone(text: str, scale: Scale) -> Statement | None:
    """Reads a number that is all there is, or stands on the first or the last line by itself, and on no other line.

    Args:
        text: A folded text without any other statement.
        scale: What was offered.
    """
    first = before = last = alone = None
    for line in re.finditer(r"[^\n]+", text):
        if not line.group().strip("`*_#->| \t"):
            continue
        first, before, last = first or line, last, line
        if (value := value_of(line.group(), scale)) is None:
            continue
        if alone is not None:
            return None
        alone = Statement(line.start(), line.end(), value, "own")
    if alone is None or first is None or last is None or alone.start not in (first.start(), last.start()):
        return None
    introduction = before.group().rstrip("* ") if before else ""
    if alone.start == last.start() and introduction.endswith(":") and _SPOKEN.search(introduction[-_LOOK_BACK:]):
        return None
    return alone


# A number as all there is on a line, in any decoration.
_ALONE = re.compile(
    rf"[\s*_`'\"‘’“”\[({{<$\\「『#>-]{{0,12}}(?:\\boxed\{{[ {{]{{0,3}})?(?P<open>)(?P<about>[~≈±+])?{_NUMBER}"
)


def value_of(content: Any, scale: Scale) -> int | None:
    """Returns the rating that a text or a JSON value is, :data:`NOT_OFFERED`, or None where it is no number at all."""
    if isinstance(content, str):
        match = _ALONE.match(content)
        value, end = _value(content, match, scale) if match else (None, 0)
        return value if value is not None and _LINE_ENDS.match(content, end) and "\n" not in content.strip() else None
    if isinstance(content, bool) or not isinstance(content, int | float):
        return None
    return int(content) if content in range(scale.lowest, scale.highest + 1) else NOT_OFFERED


def named_by(key: str) -> Standing | None:
    """Returns what a rating under this key of a JSON object is, or None where the key names no rating."""
    words = _WORD.findall(key.lower())
    if not words or not (words[-1] in _PRIMARY or words[-1] in ("score", "verdict", "grade")):
        return None
    if all(word in _OWN_WORDS for word in words[:-1]):
        return "own"
    return "aside"


def _inside_a_word(text: str, start: int, label: str) -> bool:
    """Whether a word for a rating is the end of another word, as in ``operating``."""
    return start > 0 and label[0].isascii() and text[start - 1].isalpha() and text[start - 1].isascii()


def _value(text: str, match: re.Match[str], scale: Scale, closes: str = "") -> tuple[int | None, int]:
    """Returns the value of a statement, None for a repeated scale or a number in a list, and where it ends."""
    number, end = match["number"], match.end()
    plain = _WORDS.get(number)
    if plain is None:
        whole, _, fraction = number.replace(",", ".").partition(".")
        plain = int(whole) if fraction in ("", "0", "00") and len(whole) < 3 else NOT_OFFERED
    elif not _LINE_ENDS.match(text, end) and not _WORD_ENDS.match(text, end):
        return None, end  # "rating: one of the best"
    if number.endswith((".", ",")):
        end -= 1
    groups = match.groupdict()
    opened = groups.get("open") or ""
    bracketed = "[[" in opened or bool(closes)
    offered = plain in range(scale.lowest, scale.highest + 1) and not groups.get("about")
    if unit := _UNIT.match(text, end):
        end = unit.end()
    elif _is_attached(text, end):
        offered = False
    if (span := _RANGE.match(text, _CLOSE.match(text, end).end())) or (span := _RANGE.match(text, end)):  # type: ignore[union-attr]
        if span["other"] and not span["again"] and (plain, _count(span["other"])) == (scale.lowest, scale.highest):
            return None, span.end()
        if not (bracketed and text[end : span.end()].lstrip("]*_").startswith((" ", ",", "、"))):
            return NOT_OFFERED, span.end()
    closed = _CLOSE.match(text, end)
    after = closed.end() if closed else end
    for place in (end, after):
        if scaled := _OUT_OF.match(text, place):
            offered = offered and _count(scaled[1]) == scale.highest
            end = scaled.end()
            after = _CLOSE.match(text, end).end()  # type: ignore[union-attr]
            break
    if _HEDGED.match(text, after):
        offered = False
    if bracketed and "]" not in text[match.end() : after]:
        offered = False
    if "<" in opened and ">" not in text[match.end() : after]:
        offered = False
    if (other := _OTHER_SCALE.match(text, after)) and int(other[1] or other[2]) != scale.highest:
        offered = False
    separate = "\n" in (groups.get("mark") or "") + (groups.get("heading") or "") + opened
    if separate and not _LINE_ENDS.match(text, after):
        return None, after  # a list begins there
    return (plain if offered else NOT_OFFERED), after if text[end:after].strip() else end


def _is_attached(text: str, end: int) -> bool:
    """Whether a number goes on in a way that makes it another: ``2nd``, ``7%``, ``7+``, ``1e1``, ``7-``."""
    mark, following = text[end : end + 1], text[end + 1 : end + 2]
    if mark in ("%", "+", "±"):
        return True
    if mark == "-":
        return not following.isalnum() and not following.isspace()
    return mark.isascii() and mark.isalnum()


def _count(text: str) -> int:
    return _WORDS.get(text, -1) if not text.isdigit() else int(text)


def _ends_its_clause(text: str, end: int) -> bool:
    """Whether a number in prose stands for itself, and counts nothing."""
    return bool(_CLAUSE_ENDS.match(text, end))


def _lead(text: str, start: int) -> tuple[str, bool]:
    """Returns what stands before a statement in its sentence, and whether that begins its line."""
    line = text.rfind("\n", max(0, start - _LOOK_BACK), start) + 1 or max(0, start - _LOOK_BACK)
    before = text[line:start]
    ends = [found.end() for found in _SENTENCE.finditer(before)]
    return before[ends[-1] :] if ends else before, not ends


def _is_supposed(text: str, start: int, end: int) -> bool:
    """Whether a sentence denies or supposes a rating, or quotes it: in prose, nothing follows from such a number."""
    lead, _ = _lead(text, start)
    lead = _POLITE.sub(" ", lead)
    cued = any(cue.search(lead) for cue in (_SUPPOSED, _DENIED, _SPOKEN))
    return cued or bool(_SPOKEN_OF.match(text, end)) or bool(_CONDITION.match(text[end : end + _LOOK_AHEAD]))


def standing_of(text: str, start: int, end: int, layout: Layout) -> Standing:
    """Tells whose statement it is, from its sentence, its line, and what introduces the line."""
    if any(quotation.start < start < quotation.stop for quotation in layout.quotations):
        return "mentioned"
    lead, begins_line = _lead(text, start)
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
    if quoted and not _LINE_ENDS.match(text, end) and not re.match(r"[\s\S]{0,4}[.,;:!)]", following):
        return "mentioned"
    return _introduced(text, start, layout.fences) if begins_line else "own"


# A tag around a judge's own verdict; one around a text to be graded, opened or closed; lines of a quotation and others.
_OWN_TAG = re.compile(r"^\s{0,4}<(?:final[-_]?)?(?:answer|rating|score|verdict|output|result|judge?ment)>")
_TEXT_TAG = re.compile(r"<(/?)(?:response|question|reference|candidate|assistant|user)[-_a-z0-9]{0,30}>")
_BLOCK_QUOTE = re.compile(r"[ \t]*>")
_UNQUOTED = re.compile(r"^[ \t]*+(?!>)\S", re.MULTILINE)


def _inside_a_tag(text: str, start: int) -> bool:
    """Whether the last tag of a text to be graded is still open."""
    tags = _TEXT_TAG.findall(text, max(0, start - _LOOK_BACK), start)
    return bool(tags) and tags[-1] == ""


def _after(lead: str, quoted: bool) -> Standing:
    """Tells whose statement follows these words of its sentence."""
    cuts = [found.end() for found in _CLAUSE.finditer(lead)]
    clause = lead[cuts[-1] :] if cuts else lead
    earlier = lead[: cuts[-1]] if cuts else ""
    words = _WORD.findall(clause)
    polite = _POLITE.sub(" ", clause)
    spoken = _SPOKEN.search(_GRADED.sub(" ", clause))
    if len(words) <= 4 and _CRITERION.search(clause) and not spoken:
        return "aside"
    if spoken or _DENIED.search(polite):
        return "mentioned"
    connected = _CONNECTED.search(clause) or (len(cuts) > 0 and _is_short_connective(earlier))
    if not connected and (_SUPPOSED.search(polite) or _CONDITIONAL.search(earlier) or _TENTATIVE.search(lead)):
        return "mentioned"
    if not words:
        return _after_a_clause(earlier, quoted)
    if connected or all(word in _OWN_WORDS for word in words):
        return "mentioned" if _SPOKEN.search(" ".join(_WORD.findall(earlier)[-4:])) and not connected else "own"
    if _GIVES.search(clause):
        return "mentioned" if _SPOKEN.search(" ".join(_WORD.findall(earlier)[-1:])) else "own"
    return "mentioned"


def _is_short_connective(earlier: str) -> bool:
    """Whether the clause before is a mere ``therefore``."""
    cuts = [found.end() for found in _CLAUSE.finditer(earlier.rstrip())]
    last = earlier[cuts[-2] if len(cuts) > 1 else 0 :]
    return len(_WORD.findall(last)) <= 2 and bool(_CONNECTED.search(last))


def _after_a_clause(earlier: str, quoted: bool) -> Standing:
    """Tells whose statement follows a comma, a dash, a colon or an opening bracket."""
    mark = earlier.rstrip()[-1:]
    cuts = [found.end() for found in _CLAUSE.finditer(earlier)]
    clause = earlier[cuts[-2] :] if len(cuts) > 1 else earlier
    words = _WORD.findall(clause)
    if len(words) <= 4 and _CRITERION.search(clause):
        return "aside"
    if all(word in _OWN_WORDS for word in words) or (_CONNECTED.search(clause) and len(words) <= 4):
        return "own"
    if _SPOKEN.search(" ".join(words[-4:])):
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
    before = text[max(0, start - _LOOK_BACK) : text.rfind("\n", 0, start) + 1].rstrip(" \t\n`")
    line = before[before.rfind("\n") + 1 :].strip("*_# \t>")
    if not line.endswith(":") and (not fenced or alone):
        return "own"
    ends = [found.end() for found in _SENTENCE.finditer(line)]
    line = line[ends[-1] :] if ends else line
    if _CONNECTED.search(line[-_LAST_WORDS:]):
        return "own"
    if announced := _ANNOUNCED.search(line):
        before_it = _WORD.findall(_GRADED.sub(" ", line[: announced.start()]))[-2:]
        return "mentioned" if _SPOKEN.search(" ".join(before_it)) else "own"
    if _SPOKEN.search(line) or _SUPPOSED.search(line):
        return "mentioned"
    if len(_WORD.findall(line)) <= 3:
        if _CRITERION.search(line):
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
    line = text.rfind("\n", max(0, start - _LOOK_BACK), start) + 1 or max(0, start - _LOOK_BACK)
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
