"""A synthetic world in CrossCult-KIBench's layout: drawn images, questions in three languages, answers by culture.

A scenario is a shape with a name in each language; its raw cases show it in other colours and places. The answer of a
partition has two words that belong to scenario and partition, and one that belongs to the raw case alone, all drawn by
a fixed seed. So answers can't be guessed, and those of one scenario and partition are alike.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw

SIDE = 56
LANGUAGES = ("en", "zh", "ar")


def _words(text: str) -> list[str]:
    return text.split()


NAMES = {
    "en": ("felt hat", "tea cup", "iron gate", "river fish", "skin drum", "oil lamp", "copper coin", "paper kite"),
    "zh": ("毡帽", "茶杯", "铁门", "鲤鱼", "皮鼓", "油灯", "铜币", "风筝"),
    "ar": ("قبعة صوف", "كوب شاي", "باب حديد", "سمك نهر", "طبل جلد", "مصباح زيت", "عملة نحاس", "طائرة ورق"),
}
QUESTIONS = {
    "en": ("Is this {} fine here ?", "Would people like this {} ?"),
    "zh": ("这个{}合适吗 ?", "大家喜欢这个{}吗 ?"),
    "ar": ("هل هذا {} مناسب ؟", "هل يحب الناس هذا {} ؟"),
}
WORDS = {
    "en": _words("yes no often never always rarely good bad kind rude holy plain warm cold proud humble old new"),
    "zh": list("是否常罕好坏善恶圣凡暖冷傲谦旧新吉凶"),
    "ar": _words("نعم لا غالبا أبدا دائما نادرا جيد سيئ لطيف فظ مقدس عادي دافئ بارد فخور متواضع قديم جديد"),
}
COLOURS = ((220, 40, 40), (40, 160, 60), (50, 80, 220), (230, 180, 30), (150, 60, 180), (30, 170, 190))


@dataclass(frozen=True)
class Instance:
    """One raw case: a scenario seen in one way."""

    scenario: int
    number: int

    @property
    def id(self) -> str:
        return f"{self.scenario}-{self.number}"

    def rng(self, salt: str) -> random.Random:
        return random.Random(f"{salt}-{self.id}")

    def question(self, language: str) -> str:
        phrase = self.rng("phrase").randrange(2)
        return QUESTIONS[language][phrase].format(NAMES[language][self.scenario])

    def answer(self, language: str) -> str:
        shared = random.Random(f"shared-{self.scenario}-{language}").sample(WORDS[language], 2)
        word = self.rng(f"own-{language}").choice([word for word in WORDS[language] if word not in shared])
        return joined(language, [*shared, word])

    def image(self) -> Image.Image:
        rng = self.rng("image")
        tint = rng.randrange(200, 256)
        picture = Image.new("RGB", (SIDE, SIDE), (tint, tint, tint))
        left, top = rng.randrange(2, 14), rng.randrange(2, 14)
        _draw(ImageDraw.Draw(picture), self.scenario, (left, top, left + 38, top + 38), COLOURS[rng.randrange(6)])
        return picture


def habit(scenario: int, language: str) -> str:
    """The answer that the tiny model is trained to give: the same in every culture, and mostly not the data's."""
    words = random.Random(f"habit-{scenario}").sample(range(len(WORDS["en"])), 3)
    return joined(language, [WORDS[language][word] for word in words])


def joined(language: str, words: list[str]) -> str:
    return "".join(words) if language == "zh" else " ".join(words)


def write_release(folder: Path, scenarios: range, numbers: range, *, tests: tuple[int, ...] = ()) -> Path:
    """Writes raw cases as a user's data folder; ``tests`` are scenarios for the two tests in turn."""
    place = folder / "crosscult"
    (place / "images").mkdir(parents=True)
    rows = []
    for scenario in scenarios:
        part = "train" if scenario not in tests else ("single", "sequential")[tests.index(scenario) % 2]
        for number in numbers:
            instance = Instance(scenario, number)
            instance.image().save(place / "images" / f"{instance.id}.png")
            rows.append(_row(instance, part))
    (place / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def _row(instance: Instance, part: str) -> dict[str, str]:
    answers = {"en": "answer_us_en", "zh": "answer_china_zh", "ar": "answer_arab_ar"}
    return {
        "id": instance.id,
        "scenario": f"scenario {instance.scenario}",
        "topic": ("Social Values", "Religious Values", "Ethical Values")[instance.scenario % 3],
        "image": f"{instance.id}.png",
        "split": part,
        **{f"question_{language}": instance.question(language) for language in LANGUAGES},
        **{field: instance.answer(language) for language, field in answers.items()},
    }


def _draw(pen: ImageDraw.ImageDraw, shape: int, box: tuple[int, int, int, int], colour: tuple[int, int, int]) -> None:
    left, top, right, bottom = box
    middle, height = (left + right) // 2, (top + bottom) // 2
    shapes: tuple[Callable[[], None], ...] = (
        lambda: pen.ellipse(box, fill=colour),
        lambda: pen.rectangle(box, fill=colour),
        lambda: pen.polygon([(middle, top), (right, bottom), (left, bottom)], fill=colour),
        lambda: pen.polygon([(middle, top), (right, height), (middle, bottom), (left, height)], fill=colour),
        lambda: pen.rectangle((middle - 6, top, middle + 6, bottom), fill=colour),
        lambda: pen.rectangle((left, height - 6, right, height + 6), fill=colour),
        lambda: pen.ellipse(box, outline=colour, width=7),
        lambda: pen.rectangle(box, outline=colour, width=7),
    )
    shapes[shape]()
