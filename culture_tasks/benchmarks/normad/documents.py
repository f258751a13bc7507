"""NormAd's stories as documents of a harness, with what a task tells of the culture that they play in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator

from culture_tasks.benchmarks.interface import Documents
from culture_tasks.data.releases import ReleaseFacts, check_release
from culture_tasks.data.sources import Source, read_source
from culture_tasks.data.tables import (
    Identifier,
    Label,
    OptionalLabel,
    OptionalText,
    TableRow,
    Text,
    fingerprint,
    unique,
    validated,
)
from culture_tasks.errors import DataError, nearest
from culture_tasks.settings import Settings

STORIES = 2_633

Condition = Literal["none", "country", "value", "country_value", "rule"]
"""What the model is told beside the story: nothing, the country, an abstract value, both, or the concrete norm."""

CONDITIONS: tuple[Condition, ...] = get_args(Condition)

LABELS: Mapping[str, str] = {"yes": "Yes", "no": "No", "neutral": "Neither"}
"""Whether the action is acceptable, as in the data, and the option of the prompt."""

BINS: Mapping[str, tuple[str, ...]] = {
    "African-Islamic": (
        *("afghanistan", "bangladesh", "egypt", "ethiopia", "iran", "iraq", "kenya", "lebanon", "mauritius"),
        *("pakistan", "palestinian_territories", "saudi_arabia", "somalia", "south_africa", "south_sudan", "sudan"),
        *("syria", "türkiye", "zimbabwe"),
    ),
    "Orthodox Europe": (
        *("bosnia_and_herzegovina", "greece", "north_macedonia", "romania", "russia", "serbia", "ukraine"),
    ),
    "Confucian": ("china", "hong_kong", "japan", "south_korea", "taiwan"),
    "Catholic Europe": ("austria", "croatia", "hungary", "italy", "poland", "portugal", "spain"),
    "Protestant Europe": ("france", "germany", "netherlands", "sweden", "malta"),
    "English Speaking": (
        *("australia", "canada", "ireland", "new_zealand", "united_kingdom", "united_states_of_america"),
    ),
    "Latin America": ("argentina", "brazil", "chile", "colombia", "mexico", "peru", "venezuela"),
    "West and South Asia": (
        *("cambodia", "cyprus", "fiji", "india", "indonesia", "israel", "laos", "malaysia", "myanmar", "nepal"),
        *("papua_new_guinea", "samoa", "singapore", "sri_lanka", "thailand", "timor-leste", "tonga", "vietnam"),
        "philippines",
    ),
}
"""The countries by the bins of Inglehart and Welzel, as the authors assign them (``src/data_description.py``)."""

BIN_OF = {country: name for name, countries in BINS.items() for country in countries}

_TOPICS: Mapping[str, tuple[str, ...]] = {
    "basic_etiquette": (
        *("manners_in_vietnam", "māori_etiquette", "cleanliness", "direct_manners", "tipping", "pub_etiquette"),
        "‘taarof’_(politeness_and_mutual_respect)",
    ),
    "visiting": ("visiting_and_eating", "visiting_a_village"),
    "eating": ("eating_out", "religious_dietary_laws", "drinking", "drinking_coffee", "toasting"),
    "gifts": ("gift-giving", "gift_giving", "offering_and_complimenting_items"),
}
TOPICS = tuple(_TOPICS)
"""The four topics that the authors merge the sub-axes into."""

_TOPIC_OF = {name: topic for topic, names in _TOPICS.items() for name in (topic, *names)}

SOURCE = Source(
    folder="normad",
    stems=("normad_etiquette_final_data", "normad"),
    hub="akhilayerukola/NormAd",
    split="train",
    release=ReleaseFacts(
        rows=STORIES,
        culture="country",
        fits=lambda country: country in BIN_OF,
        expected=f"one of {', '.join(sorted(BIN_OF))}",
    ),
)

ALIASES = {
    "ID": "id",
    "Country": "country",
    "Background": "background",
    "Axis": "axis",
    "Subaxis": "subaxis",
    "Value": "value",
    "Rule-of-Thumb": "rule",
    "Story": "story",
    "Explanation": "explanation",
    "Gold Label": "label",
}


def _a_label(label: str) -> str:
    if label not in LABELS:
        raise ValueError(f"{nearest(label, LABELS)} Allowed are {', '.join(LABELS)}".strip())
    return label


class StoryRow(TableRow):
    """A story."""

    id: Identifier
    country: Label
    value: OptionalText = None
    rule: OptionalText = None
    story: Text
    label: Annotated[Label, AfterValidator(_a_label)]
    subaxis: OptionalLabel = None
    background: OptionalText = None
    axis: OptionalLabel = None
    explanation: OptionalText = None


def load(condition: Condition, settings: Settings) -> Documents:
    """Loads the stories with what the condition tells of the culture.

    Raises:
        DataError: If they can't be used.
    """
    table = read_source(SOURCE, settings.data_folder)
    rows = validated(table, StoryRow, ALIASES)
    ids = list(unique(table, (row.id for row in rows), "ID"))
    check_release(SOURCE.release, table, [vars(row) for row in rows])
    data = fingerprint(row.model_dump(include={"id", "country", "value", "rule", "story", "label"}) for row in rows)
    told: Mapping[Condition, tuple[str, ...]] = {"value": ("value",), "country_value": ("value",), "rule": ("rule",)}
    for index, row in enumerate(rows):
        if missing := next((name for name in told.get(condition, ()) if getattr(row, name) is None), None):
            column = {field: name for name, field in ALIASES.items()}[missing]
            raise DataError(
                f"{table.where(index)}, field {column!r}: found nothing. normad_{condition} shows it to the model: "
                "complete the row, or leave this task out."
            )
    return Documents(
        [
            {
                "id": identifier,
                "country": row.country,
                "topic": _TOPIC_OF.get((row.subaxis or "").lower(), ""),
                "story": row.story,
                # The value takes the place of the rule of thumb in the authors' templates.
                "rule": (row.rule if condition == "rule" else row.value) or "",
                "label": row.label,
                "data": data,
            }
            for identifier, row in zip(ids, rows, strict=True)
        ]
    )
