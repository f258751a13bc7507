"""CARE's responses with native annotators' ratings, and the agreement that the paper reports."""

from __future__ import annotations

import re
from typing import get_args

from culture_tasks.benchmarks.care.benchmark import CATEGORIES, RELEASED_NAMES
from culture_tasks.benchmarks.care.rubrics import RUBRIC_FOR
from culture_tasks.benchmarks.human_ratings import CultureKind, HumanRatings, PublishedAgreement
from culture_tasks.data.rows import TableRow
from culture_tasks.data.tables import Table
from culture_tasks.errors import DataError, nearest

_CATEGORY_OF = {
    name.casefold(): category for category, released in RELEASED_NAMES.items() for name in (category, released)
}


def _category_named(text: str) -> str | None:
    names = (*RELEASED_NAMES.values(), *CATEGORIES)
    if (category := _CATEGORY_OF.get(text.strip().casefold())) is None and (hint := nearest(text, names)):
        raise DataError(f"care: unknown category {text!r}.{hint} Expected one of {', '.join(RELEASED_NAMES.values())}.")
    return category


def _native_language(culture: str) -> str | None:
    """Says the language of a native culture; a foreign one is asked about in any of CARE's three languages."""
    native = re.match(r"\s*native\b[\s:(\[-]*([a-z]+)", culture, re.IGNORECASE)
    return native.group(1) if native else None


def _kind_of_culture(culture: str) -> CultureKind | None:
    """Says which of section 3.3's three labels a culture has: "Native (Chinese)", "foreign: US", "General"."""
    first = re.match(r"[a-z]*", culture.strip().casefold())
    return next((kind for kind in get_args(CultureKind) if first and kind == first.group()), None)


HUMAN_RATINGS = HumanRatings(
    about="CARE's 28,091 rated responses",
    source=Table(
        model=TableRow,  # people.rated_responses has the model of rated rows
        folder="care_ratings",
        stems=("train", "data/train-00000-of-00001", "train-00000-of-00001"),
        hub="geyang627/CARE",
        split="train",
    ),
    aliases={
        "answer": "reference",
        "cul_type": "category",
        "culture_type": "category",
        "translated_question (optional)": "translated_question",
    },
    known_by=frozenset({"answer", "human_rating", "cul_type", "associated_culture"}),
    categories=CATEGORIES,
    category_named=_category_named,
    rubric_for=lambda category: RUBRIC_FOR[str(_category_named(category))],
    native_language=_native_language,
    kind_of_culture=_kind_of_culture,
    tests=("care",),
    published=(
        # Appendix C.2 names neither the rows nor the variant of tau.
        PublishedAgreement(
            name="gpt_4o",
            raters="paper: GPT-4o",
            dimension="overall",
            figures={"all": {"pearson": "0.933", "spearman": "0.901", "kendall_tau_b": "0.733"}},
        ),
        # Table 2 doesn't name alpha's level.
        PublishedAgreement(
            name="second_annotator",
            raters="paper: second annotator",
            dimension="language",
            figures={
                "ar": {"pearson": "0.90", "spearman": "0.88", "kendall_tau_b": "0.71", "krippendorff_alpha": "0.86"},
                "zh": {"pearson": "0.89", "spearman": "0.89", "kendall_tau_b": "0.75", "krippendorff_alpha": "0.84"},
                "ja": {"pearson": "0.93", "spearman": "0.92", "kendall_tau_b": "0.77", "krippendorff_alpha": "0.92"},
            },
        ),
    ),
    published_in="CARE (Guo et al., 2025), Appendix C.2 and Table 2: the paper's figures, not measured here",
)
