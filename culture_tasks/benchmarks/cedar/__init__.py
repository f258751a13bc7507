"""CEDAR (Dai et al., 2026): which of 14 emotions a scene calls up, asked in seven languages."""
