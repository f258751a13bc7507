"""Judges behind an OpenAI-compatible endpoint."""
