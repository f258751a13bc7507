"""The tiny models answer, end, depend on their input, and come out alike each time."""

import tiny_models
import torch
from PIL import Image
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, AutoProcessor, AutoTokenizer

TEXTS = [
    "What is this dish called?",
    "ما اسم هذا الطبق؟",
    "这道菜叫什么名字？",
    "इस व्यंजन का नाम क्या है?",
    "Chakula hiki kinaitwaje? ไทย 한국어 😅\n\ttab",
]


def greedy(model, inputs, limit=300):
    tokens = model.generate(**inputs, do_sample=False, max_new_tokens=limit)
    return tokens[0, inputs["input_ids"].shape[1] :]


def test_any_script_round_trips_and_the_chat_template_takes_plain_text_and_parts(tiny_lm):
    tokenizer = AutoTokenizer.from_pretrained(tiny_lm)
    assert [tokenizer.decode(tokenizer(text).input_ids) for text in TEXTS] == TEXTS
    plain = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    parts = [{"role": each["role"], "content": [{"type": "text", "text": each["content"]}]} for each in plain]
    expected = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    for messages in (plain, parts):
        assert tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True) == expected


def test_answers_end_and_depend_on_the_question(tiny_lm):
    tokenizer = AutoTokenizer.from_pretrained(tiny_lm)
    model = AutoModelForCausalLM.from_pretrained(tiny_lm)
    answers = [greedy(model, tokenizer(text, return_tensors="pt")) for text in TEXTS]
    assert all(answer[-1] == tokenizer.eos_token_id for answer in answers)
    assert len({tokenizer.decode(answer, skip_special_tokens=True) for answer in answers}) == len(TEXTS)


def test_answers_depend_on_the_image(tiny_vlm):
    processor = AutoProcessor.from_pretrained(tiny_vlm)
    model = AutoModelForImageTextToText.from_pretrained(tiny_vlm)
    content = [{"type": "image"}, {"type": "text", "text": "What is this?"}]
    prompt = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True)
    images = [Image.new("RGB", (128, 96), colour) for colour in ("red", "green", "white")]
    answers = {
        tuple(greedy(model, processor(images=image, text=prompt, return_tensors="pt")).tolist()) for image in images
    }
    assert len(answers) == len(images)


def test_two_models_are_the_same_and_the_command_names_the_folder(tiny_lm, tmp_path, capsys):
    tiny_models.main(["lm", str(tmp_path / "lm")])
    assert capsys.readouterr().out.strip() == str(tmp_path / "lm")
    first = AutoModelForCausalLM.from_pretrained(tiny_lm).state_dict()
    second = AutoModelForCausalLM.from_pretrained(tmp_path / "lm").state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
