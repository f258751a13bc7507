"""Reads which emotion a model's reply chooses: :func:`~culture_tasks.benchmarks.cedar.reading.choice.read_reply`.

From the text to the answer, each module on the one before: ``folding`` makes spellings alike, ``lexicon`` holds the
words of seven languages, ``mentions`` finds them, ``surroundings`` tells what the text around a word says of it,
``turning_away`` and ``candidates`` set aside what is no candidate for the answer, and ``choice`` decides.
"""
