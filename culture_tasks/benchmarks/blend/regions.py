"""BLEnD's 16 regions, in 13 languages, and its six topics, as the authors' files name them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Region:
    """A country or region."""

    name: str  # in the authors' files
    code: str  # of its split on the Hub
    language: str  # that people there were asked in
    valid: int  # questions of its 500, by the paper's rule, in the release of December 2024

    @property
    def label(self) -> str:
        """Its name in prompts and tables."""
        return self.name.replace("_", " ")

    @property
    def slug(self) -> str:
        """Its part of a task's name."""
        return self.name.lower()


REGIONS: tuple[Region, ...] = (
    Region("Algeria", "DZ", "ar", 437),
    Region("Assam", "AS", "as", 477),
    Region("Azerbaijan", "AZ", "az", 469),
    Region("China", "CN", "zh", 474),
    Region("Ethiopia", "ET", "am", 472),
    Region("Greece", "GR", "el", 460),
    Region("Indonesia", "ID", "id", 480),
    Region("Iran", "IR", "fa", 456),
    Region("Mexico", "MX", "es", 479),
    Region("North_Korea", "KP", "ko", 444),
    Region("Northern_Nigeria", "NG", "ha", 455),
    Region("South_Korea", "KR", "ko", 475),
    Region("Spain", "ES", "es", 469),
    Region("UK", "GB", "en", 456),
    Region("US", "US", "en", 461),
    Region("West_Java", "JB", "su", 458),
)

TOPICS: Mapping[str, str] = {
    "food": "Food",
    "sport": "Sport",
    "family": "Family",
    "education": "Education",
    "holidays": "Holidays/Celebration/Leisure",
    "work_life": "Work life",
}
"""The six topics of the questions, and how the data spell them."""
