"""What the CARE paper (Guo et al., 2025) reports, to stand beside a user's numbers on its data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from culture_tasks.metrics.rater_agreement import Statistic

GPT_4O: Mapping[Statistic, str] = {"pearson": "0.933", "spearman": "0.901", "kendall_tau_b": "0.733"}
"""GPT-4o against native annotators (Appendix C.2). The paper names neither the rows nor the variant of tau."""

SECOND_ANNOTATOR: Mapping[str, Mapping[Statistic, str]] = {
    "ar": {"pearson": "0.90", "spearman": "0.88", "kendall_tau_b": "0.71", "krippendorff_alpha": "0.86"},
    "zh": {"pearson": "0.89", "spearman": "0.89", "kendall_tau_b": "0.75", "krippendorff_alpha": "0.84"},
    "ja": {"pearson": "0.93", "spearman": "0.92", "kendall_tau_b": "0.77", "krippendorff_alpha": "0.92"},
}
"""People against people, by language (Table 2). The paper doesn't name alpha's level."""

SOURCE = "CARE (Guo et al., 2025), Appendix C.2 and Table 2: the paper's figures, not measured here"


def published(dimension: str, label: str) -> tuple[str, Mapping[Statistic, str]] | None:
    """Returns what the paper compares and its figures, as printed, for a group of CARE's responses; or None."""
    if dimension == "overall":
        return "paper: GPT-4o", GPT_4O
    if dimension == "language" and label in SECOND_ANNOTATOR:
        return "paper: second annotator", SECOND_ANNOTATOR[label]
    return None


def figures_json() -> dict[str, Any]:
    """Returns the paper's figures as plain JSON data."""
    annotators = {language: _numbers(figures) for language, figures in SECOND_ANNOTATOR.items()}
    return {"source": SOURCE, "gpt_4o": _numbers(GPT_4O), "second_annotator": annotators}


def _numbers(figures: Mapping[Statistic, str]) -> dict[str, float]:
    return {name: float(value) for name, value in figures.items()}
