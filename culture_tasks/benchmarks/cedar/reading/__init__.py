"""Reads which emotion a model's reply chooses, by the words of seven languages that its lexicon has."""
