"""The report as one self-contained HTML page."""

SAMPLES_PER_CELL = 10
"""Most samples of each run that a cell of a table opens, unless the user asks for more or fewer."""
