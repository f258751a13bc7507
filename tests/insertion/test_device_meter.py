"""Time, memory and names of devices."""

from __future__ import annotations

import torch
from torch import nn

from culture_tasks.insertion.core import device_meter


def test_a_process_on_a_cpu_has_a_peak_that_only_rises():
    device = torch.device("cpu")
    before = device_meter.peak_gib(device)
    held = torch.ones(64 * 2**20)  # 0.25 GiB
    assert device_meter.peak_gib(device) >= before > 0.05
    assert held.sum() == 64 * 2**20


def test_devices_are_counted(monkeypatch):
    model = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2, device="meta")])
    assert device_meter.devices_of(model) == "CPU + META"
    monkeypatch.setattr(device_meter, "device_name", lambda _: "A100")
    assert device_meter.devices_of(model) == "2 x A100"
