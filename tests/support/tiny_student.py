"""A tiny multimodal model, trained on the spot to have habits and to follow its context.

It learns two things about the synthetic world: without context it says what it always says about a scenario, whatever
the culture; with a reference in its context that has the request's question it repeats the reference's answer, and with
any other reference it keeps to its habit. References hold random words while it learns, so it can't know the data.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

import tiny_models
import torch
from support.tiny_world import LANGUAGES, NAMES, QUESTIONS, WORDS, Instance, habit, joined
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import InternVLForConditionalGeneration, PreTrainedTokenizerFast

from culture_tasks import prompt_files
from culture_tasks.benchmarks.crosscult.editions import PAPER
from culture_tasks.insertion.core.adapter import MultimodalModel
from culture_tasks.insertion.core.requests import Insertion, Part, Request, image_part, text_part
from culture_tasks.insertion.methods.ike.method import context_of, demonstration

DEMONSTRATIONS = 2
_DRILLS = 600
_BATCH = 32
_POOL = 1000
_STEPS = 220
_EXAMPLES = 24  # of a step, and of similar length
_RATE = 3e-3
_SPECIALS = 8
_IGNORED = -100
Example = tuple[dict[str, torch.Tensor], list[int]]


def make_student(scenarios: int) -> MultimodalModel:
    """Makes the model and brings it up."""
    torch.manual_seed(0)
    tokenizer = _tokenizer()
    config = tiny_models._internvl_config(tokenizer)
    processor = tiny_models._internvl_processor(tokenizer)
    processor.image_processor.crop_to_patches = False
    model = InternVLForConditionalGeneration(config)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    student = MultimodalModel(model, processor, "tiny student")
    examples = [_encoded(student, *lesson) for lesson in _lessons(scenarios, random.Random(0))]
    _train(model, examples, tokenizer.pad_token_id, random.Random(0))
    student.model.requires_grad_(requires_grad=False).eval()
    return student


def _tokenizer() -> PreTrainedTokenizerFast:
    """One token a word, a Chinese character or a mark."""
    specials = [
        *(tiny_models.PAD, tiny_models.START, tiny_models.END, tiny_models.IMAGE_START, tiny_models.IMAGE_END),
        *(tiny_models.IMAGE, tiny_models.VIDEO, "<unk>"),
    ]
    split = pre_tokenizers.Split(Regex(r"\s+|[一-鿿]|[^\w\s]"), "isolated")
    strip = pre_tokenizers.Split(Regex(r" +"), "removed")
    pieces = pre_tokenizers.Sequence([split, strip])
    words = dict.fromkeys(word for text in _all_texts() for word, _ in pieces.pre_tokenize_str(text))
    vocabulary = {word: number for number, word in enumerate([*specials, *(w for w in words if w not in specials)])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pieces
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=tiny_models.PAD,
        eos_token=tiny_models.END,
        unk_token="<unk>",
        padding_side="left",
        extra_special_tokens={
            "start_image_token": tiny_models.IMAGE_START,
            "end_image_token": tiny_models.IMAGE_END,
            "context_image_token": tiny_models.IMAGE,
            "video_token": tiny_models.VIDEO,
        },
    )


def _all_texts() -> Iterator[str]:
    yield "\n \n\n system user assistant New Fact: Prompt: "
    yield prompt_files.load("culture_tasks.insertion.methods.mcki", "wrap.v1").text
    for language in LANGUAGES:
        yield PAPER[language].system_prompt
        yield " ".join(WORDS[language])
        for name in NAMES[language]:
            yield from (question.format(name) for question in QUESTIONS[language])


def _lessons(scenarios: int, rng: random.Random) -> Iterator[tuple[Request, str]]:
    makers = (_plain, _referred, _shown)
    for number in range(_POOL):
        instance = Instance(rng.randrange(scenarios), 1000 + rng.randrange(10_000))
        yield makers[number % len(makers)](instance, rng.choice(LANGUAGES), scenarios, rng)


def _plain(instance: Instance, language: str, scenarios: int, rng: random.Random) -> tuple[Request, str]:
    return _ask(instance, language), habit(instance.scenario, language)


def _referred(instance: Instance, language: str, scenarios: int, rng: random.Random) -> tuple[Request, str]:
    """A request after MCKI's reference, which has its question four times of five."""
    matches = rng.random() < 0.8
    other = instance if matches else Instance(rng.randrange(scenarios), rng.randrange(10_000))
    other_language = language if matches else rng.choice(LANGUAGES)
    answer = _random_answer(other_language, rng)
    question = other.question(other_language)
    wrap = prompt_files.load("culture_tasks.insertion.methods.mcki", "wrap.v1")
    parts = [image_part(other.image()), text_part(wrap.fill({"question": question, "answer": answer}) + "\n\n")]
    same = question == instance.question(language)
    return _ask(instance, language, parts), answer if same else habit(instance.scenario, language)


def _shown(instance: Instance, language: str, scenarios: int, rng: random.Random) -> tuple[Request, str]:
    """A request after IKE's demonstrations and its own fact."""
    shown = [_demonstration(scenarios, rng) for _ in range(DEMONSTRATIONS)]
    answer = _random_answer(language, rng)
    context = context_of(shown, [Insertion(_ask(instance, language), answer)])
    return _ask(instance, language, [text_part(context)]), answer


def _demonstration(scenarios: int, rng: random.Random) -> str:
    language = rng.choice(LANGUAGES)
    question = Instance(rng.randrange(scenarios), rng.randrange(10_000)).question(language)
    fact = f"{question} {_random_answer(language, rng)}"
    return demonstration(fact, fact)


def _random_answer(language: str, rng: random.Random) -> str:
    return joined(language, rng.sample(WORDS[language], 3))


def _ask(instance: Instance, language: str, parts: Sequence[Part] = ()) -> Request:
    query = Request.about(instance.image(), instance.question(language), PAPER[language].system_prompt)
    return query.preceded_by(parts) if parts else query


def _encoded(student: MultimodalModel, query: Request, answer: str) -> Example:
    inputs = student.encoding.encode([query.messages]).inputs
    tokenizer = student.processor.tokenizer
    return inputs, [*tokenizer(answer)["input_ids"], tokenizer.eos_token_id]


def _train(model: InternVLForConditionalGeneration, examples: Sequence[Example], pad: int, rng: random.Random) -> None:
    """Drills copying first, on random words said twice: without it, following a reference takes many times as long."""
    model.requires_grad_(requires_grad=True).train()
    words = range(_SPECIALS, model.config.text_config.vocab_size)
    _descend(model, [lambda: _drill(words, rng)] * _DRILLS)
    by_length = sorted(examples, key=lambda example: example[0]["input_ids"].shape[1] + len(example[1]))

    def lesson() -> dict[str, torch.Tensor]:
        first = rng.randrange(len(by_length) - _EXAMPLES)
        return _batch(by_length[first : first + _EXAMPLES], pad)

    _descend(model, [lesson] * _STEPS)


def _descend(model: InternVLForConditionalGeneration, batches: Sequence[Callable[[], dict[str, torch.Tensor]]]) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=_RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATE, total_steps=len(batches), pct_start=0.1)
    for make in batches:
        optimizer.zero_grad()
        model(**make()).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()


def _drill(words: Sequence[int], rng: random.Random) -> dict[str, torch.Tensor]:
    """Some words, the same again: only the second time counts."""
    length = rng.randrange(6, 24)
    once = torch.tensor([rng.sample(words, length) for _ in range(_BATCH)])
    opening, between = (torch.tensor([rng.sample(words, 4) for _ in range(_BATCH)]) for _ in range(2))
    ids = torch.cat([opening, once, between, once], dim=1)
    labels = ids.clone()
    labels[:, : -length + 1] = _IGNORED
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}


def _batch(examples: Sequence[Example], pad: int) -> dict[str, torch.Tensor]:
    rows = [inputs["input_ids"][0].tolist() + answer for inputs, answer in examples]
    width = max(map(len, rows))
    labels = [[_IGNORED] * (width - len(answer)) + answer for _, answer in examples]
    return {
        "input_ids": torch.tensor([[pad] * (width - len(row)) + row for row in rows]),
        "attention_mask": torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows]),
        "labels": torch.tensor(labels),
        "pixel_values": torch.cat([inputs["pixel_values"] for inputs, _ in examples]),
    }
