"""The report as Markdown, LaTeX, CSV and JSON; texts of models and data are escaped in each."""
