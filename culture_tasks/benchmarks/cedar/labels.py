"""The closed vocabularies of CEDAR: emotions, Russell quadrants, languages and the words of the option lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

Emotion = Literal[
    "anger",
    "disgust",
    "fear",
    "happiness",
    "sadness",
    "surprise",
    "amusement",
    "awe",
    "contentment",
    "desire",
    "embarrassment",
    "pain",
    "relief",
    "sympathy",
]
Quadrant = Literal["I", "II", "III", "IV"]
Language = Literal["ar", "en", "es", "hi", "ja", "sw", "zh"]
Modality = Literal["text", "multimodal"]

EMOTIONS: Final[tuple[Emotion, ...]] = get_args(Emotion)
"""The 14 labels, in the order of the paper's tables and option lists."""
QUADRANT_NAMES: Final[tuple[Quadrant, ...]] = get_args(Quadrant)
LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)
MODALITIES: Final[tuple[Modality, ...]] = get_args(Modality)

QUADRANTS: Final[Mapping[Quadrant, tuple[Emotion, ...]]] = {
    "I": ("amusement", "happiness", "surprise"),
    "II": ("anger", "disgust", "fear", "pain"),
    "III": ("embarrassment", "sadness"),
    "IV": ("awe", "contentment", "desire", "relief", "sympathy"),
}
"""Quadrants of Russell's circumplex as section 2.5 lists them: I pleasant and activated, II unpleasant and
activated, III unpleasant and deactivated, IV pleasant and deactivated."""

FILE_NAMES: Final[Mapping[Language, str]] = dict(
    zip(LANGUAGES, ("arabic", "english", "spanish", "hindi", "japanese", "swahili", "chinese"), strict=True)
)
"""How the released files spell each language."""

LANGUAGE_NAMES: Final[Mapping[str, str]] = {language: name.title() for language, name in FILE_NAMES.items()}


def pair_of(prompt: str, data: str) -> str:
    """Returns the group of documents in one language that are asked about in another."""
    return f"prompt_{prompt}_data_{data}"


PAIRS: Final[Mapping[str, tuple[Language, Language]]] = {
    pair_of(prompt, data): (prompt, data) for prompt in LANGUAGES for data in LANGUAGES
}
"""The languages of prompt and data of each pair (section 4.4)."""

_WORDS: Final[Mapping[Language, str]] = {
    "ar": "غضب اشمئزاز خوف سعادة حزن دهشة تسلية رهبة قناعة رغبة إحراج ألم ارتياح تعاطف",
    "en": " ".join(EMOTIONS),
    "es": "enojo asco miedo felicidad tristeza sorpresa diversión "
    "asombro contentamiento deseo vergüenza dolor alivio compasión",
    "hi": "गुस्सा घृणा डर खुशी उदासी आश्चर्य मज़ा विस्मय संतोष इच्छा शर्मिंदगी दर्द राहत सहानुभूति",
    "ja": "怒り 嫌悪 恐怖 幸せ 悲しみ 驚き 楽しみ 畏敬 満足 欲望 恥ずかしさ 苦痛 安堵 同情",
    "sw": "hasira kinyaa hofu furaha huzuni mshangao burudani kicho kuridhika hamu aibu maumivu afueni huruma",
    "zh": "愤怒 厌恶 恐惧 幸福 悲伤 惊讶 愉悦 敬畏 满足 渴望 尴尬 痛苦 宽慰 同情",
}
OPTION_WORDS: Final[Mapping[Language, Mapping[Emotion, str]]] = {
    language: dict(zip(EMOTIONS, words.split(), strict=True)) for language, words in _WORDS.items()
}
"""The option words of Figures 9 and 10, with the text's two Arabic misspellings corrected."""

PREDICTION: Final = "prediction"
"""The group of a record that is the label of its first reply; of further runs it is ``prediction_2`` and so on."""

MISSPELLINGS: Final[Mapping[Language, Mapping[str, Emotion]]] = {"ar": {"اشمزاز": "disgust", "تسليية": "amusement"}}
"""Words of the paper's text that are accepted and never printed."""
