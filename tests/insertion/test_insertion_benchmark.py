"""The shapes whose cost is measured have the sizes that Table 4 gives."""

from __future__ import annotations

import torch
from support.scripts import speed_script

script = speed_script("insertion")
# Table 4 gives SERAC 9.61 and 10.29, of which 0.02 are the encoder's: 1.06 and 0.86 less what was rounded.
BILLIONS = {"internvl3.5-8b": 8.53, "qwen3.5-9b": 9.41, "internvl3.5-1b": 1.06, "qwen3.5-0.8b": 0.85}


def test_the_shapes_have_the_parameters_of_table_4():
    for shape, billions in BILLIONS.items():
        kind, config, _ = script.shaped(shape)
        with torch.device("meta"):
            assert round(kind(config).num_parameters() / 1e9, 2) == billions
