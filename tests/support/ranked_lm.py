"""lm-eval on several ranks without a GPU, where its own hf model runs every rank on everything.

torchrun --standalone --nproc_per_node 2 -m support.ranked_lm TASK OUTPUT
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from support.in_process import run_lm_eval
from support.scripted_lm import ScriptedLM


class RankedLM(ScriptedLM):
    """Repeats the end of each prompt, on every rank for its share of the documents."""

    device = torch.device("cpu")

    def __init__(self) -> None:
        super().__init__(lambda prompt, _: prompt[-20:])
        self._rank, self._world_size = dist.get_rank(), dist.get_world_size()

    def all_gather(self, tensor):
        gathered = [torch.zeros_like(tensor) for _ in range(self.world_size)]
        dist.all_gather(gathered, tensor)
        return torch.stack(gathered)

    def gather_object(self, obj, dst=0):
        gathered = [None] * self.world_size if self.rank == dst else None
        dist.gather_object(obj, gathered, dst=dst)
        return gathered

    def barrier(self):
        dist.barrier()


def main(task: str, output: str) -> None:
    dist.init_process_group("gloo")
    model = RankedLM()
    results = run_lm_eval(model, [task])
    shares = model.gather_object(len(model.prompts))
    if model.rank == 0:
        samples = [sample["record"] for sample in results["samples"][task]]
        outcome = {"values": results["results"][task], "samples": samples, "shares": shares}
        Path(output).write_text(json.dumps(outcome), encoding="utf-8")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
