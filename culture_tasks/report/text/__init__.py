"""The report as Markdown, LaTeX and data; texts of models and data are escaped in each."""
