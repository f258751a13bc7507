"""Grading logged samples again: another judge, a first judge, or only what failed; no model inference."""
