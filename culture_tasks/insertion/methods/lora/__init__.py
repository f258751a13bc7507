"""LoRA: low-rank matrices beside the attention's weights, trained on each sample (Hu et al., 2021)."""

LABEL = "LoRA"
