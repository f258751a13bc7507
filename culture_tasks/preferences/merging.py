"""A LoRA adapter merged into the model below it, for programs that take no adapter, such as lmms-eval's chat models."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

from culture_tasks.errors import DataError, MissingExtraError, SettingsError
from culture_tasks.preferences.dataset_folder import new_folder
from culture_tasks.results.training_manifest import FILE_NAME, Manifest

_ADAPTER_CONFIG = "adapter_config.json"


def merge(
    adapter: Path, output: Path, *, base: str | None = None, dtype: str = "auto", trust_remote_code: bool = False
) -> str:
    """Adds an adapter's weights to those of the model below it, and writes the model with its tokenizer or processor.

    The manifest of the data that the adapter was trained on comes along, so that reports know it wherever the model is.
    Without a base, the model below is the one that the adapter was trained on; it is returned.
    """
    trained_on = _trained_on(adapter)
    below = base or trained_on
    if not below:
        raise SettingsError(
            f"preferences merge: {adapter / _ADAPTER_CONFIG} doesn't say which model the adapter was trained on. "
            "Name it with --base."
        )
    if importlib.util.find_spec("peft") is None:
        raise MissingExtraError("preferences merge", "peft", "preferences")
    with new_folder(output) as part:
        try:
            _merge(adapter, below, part, dtype=dtype, trust_remote_code=trust_remote_code)
        except (OSError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise SettingsError(
                f"preferences merge: {adapter} can't be merged into {below} ({reason:.300}). Name the model that the "
                "adapter was trained on with --base."
            ) from None
        if manifest := _manifest(adapter):
            shutil.copyfile(manifest, part / FILE_NAME)
    return below


def _trained_on(adapter: Path) -> str | None:
    file = adapter / _ADAPTER_CONFIG
    try:
        config = json.loads(file.read_bytes())
    except OSError as error:
        raise SettingsError(
            f"preferences merge: {file} can't be read ({error.strerror}). Name the folder of a LoRA adapter; a "
            "model that was trained without one needs no merging."
        ) from None
    except ValueError:
        raise SettingsError(f"preferences merge: {file} is not JSON. The adapter is damaged: train it again.") from None
    name = config.get("base_model_name_or_path") if isinstance(config, dict) else None
    return name if isinstance(name, str) else None


def _merge(adapter: Path, below: str, folder: Path, *, dtype: str, trust_remote_code: bool) -> None:
    import transformers
    from peft import PeftModel, get_peft_model_state_dict
    from peft.utils.save_and_load import load_peft_weights

    config = transformers.AutoConfig.from_pretrained(below, trust_remote_code=trust_remote_code)
    kind: Any = getattr(transformers, (config.architectures or [""])[0], transformers.AutoModelForCausalLM)
    model = kind.from_pretrained(below, dtype=dtype, trust_remote_code=trust_remote_code)
    adapted = PeftModel.from_pretrained(model, str(adapter))
    saved = load_peft_weights(str(adapter), device="cpu")
    placed = get_peft_model_state_dict(adapted, save_embedding_layers=False)
    if other := sorted(key for key in saved.keys() ^ placed.keys() if ".lora_" in key):  # which peft says nothing of
        raise ValueError(f"{len(other)} weights are in one of the two alone, such as {other[0]}")
    adapted.merge_and_unload(safe_merge=True).save_pretrained(folder)
    processor = transformers.AutoProcessor.from_pretrained(below, trust_remote_code=trust_remote_code)
    processor.save_pretrained(folder)


def _manifest(adapter: Path) -> Path | None:
    """Returns the manifest of the data that an adapter was trained on: recipes save it in DIR/models/NAME."""
    above = adapter.resolve()
    for folder in (above, *above.parents[:3]):
        try:
            Manifest.load(folder / FILE_NAME)
        except DataError:
            continue
        return folder / FILE_NAME
    return None
