"""Draws the pictures of the synthetic fixtures in ``examples/data`` again: ``python examples/make_fixtures.py``.

They are a few flat shapes each, enough to tell one from another and to run an image through a harness. A picture is
a background colour and a list of shapes; a shape is a method of Pillow's ``ImageDraw``, its coordinates and its colour.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from PIL import Image, ImageDraw

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SIZE = (128, 96)
DATA = Path(__file__).parent / "data"


class Shape(NamedTuple):
    """One filled shape: boxes for all kinds but polygons, which list their corners."""

    kind: Literal["ellipse", "rectangle", "polygon"]
    coordinates: tuple[int, ...]
    colour: str


class Picture(NamedTuple):
    """A background and the shapes on it, the first at the bottom."""

    background: str
    shapes: Sequence[Shape]


def _oval(colour: str, *coordinates: int) -> Shape:
    return Shape("ellipse", coordinates, colour)


def _box(colour: str, *coordinates: int) -> Shape:
    return Shape("rectangle", coordinates, colour)


def _poly(colour: str, *coordinates: int) -> Shape:
    return Shape("polygon", coordinates, colour)


def _person(x: int, clothes: str, skin: str = "peru") -> list[Shape]:
    """A standing person, 30 pixels wide, with the feet at the lower edge."""
    return [_poly(clothes, x, 92, x + 10, 42, x + 20, 42, x + 30, 92), _oval(skin, x + 6, 22, x + 24, 42)]


def _plate(rim: str = "lightgray") -> list[Shape]:
    return [_oval(rim, 14, 30, 114, 90), _oval("white", 22, 35, 106, 85)]


CULTURALVQA: Mapping[str, Picture] = {
    "china_dumplings": Picture(
        "burlywood",
        [*_plate(), *(_poly("wheat", x, y, x + 10, y - 12, x + 20, y) for x, y in ((32, 58), (58, 54), (48, 74)))],
    ),
    "china_red_envelope": Picture(
        "linen",
        [_box("crimson", 44, 10, 86, 86), _poly("darkred", 44, 10, 86, 10, 65, 30), _oval("gold", 56, 42, 74, 60)],
    ),
    "turkey_tulip_glass": Picture(
        "beige",
        [
            _oval("white", 34, 74, 94, 92),
            _poly("firebrick", 48, 16, 80, 16, 72, 46, 80, 80, 48, 80, 56, 46),
            _box("lightgray", 48, 10, 80, 16),
        ],
    ),
    "turkey_cologne": Picture(
        "lightcyan",
        [_box("palegreen", 30, 34, 62, 90), _box("gold", 40, 16, 52, 34), _oval("peachpuff", 78, 56, 120, 78)],
    ),
    "iran_new_year_table": Picture(
        "ivory",
        [
            _box("sienna", 4, 70, 124, 92),
            *(_poly("limegreen", x, 70, x + 4, 44, x + 8, 70) for x in (10, 17, 24)),
            _oval("red", 48, 52, 66, 70),
            _oval("lightblue", 80, 38, 116, 72),
            _oval("orange", 92, 52, 106, 60),
        ],
    ),
    "iran_golden_rice": Picture(
        "steelblue", [*_plate(), _oval("ivory", 34, 42, 94, 76), _oval("goldenrod", 48, 42, 82, 60)]
    ),
    "ethiopia_flatbread": Picture(
        "saddlebrown",
        [
            _oval("tan", 10, 10, 118, 90),
            _oval("firebrick", 30, 26, 56, 46),
            _oval("darkgreen", 68, 24, 96, 44),
            _oval("darkorange", 48, 54, 78, 78),
        ],
    ),
    "ethiopia_clay_pot": Picture(
        "bisque",
        [
            _oval("black", 34, 42, 86, 90),
            _box("black", 54, 14, 66, 46),
            _poly("black", 82, 60, 104, 38, 108, 42, 88, 72),
            _oval("white", 98, 78, 122, 92),
        ],
    ),
    "nigeria_head_tie": Picture(
        "lavender", [*_person(49, "indigo", "sienna"), _poly("magenta", 44, 28, 50, 4, 66, 12, 84, 2, 84, 28)]
    ),
    "nigeria_red_rice": Picture(
        "darkseagreen", [*_plate(), _oval("orangered", 34, 42, 94, 76), _oval("green", 58, 46, 70, 54)]
    ),
    "rwanda_basket": Picture(
        "khaki",
        [_poly("saddlebrown", 40, 48, 88, 48, 80, 90, 48, 90), _poly("black", 38, 48, 64, 6, 90, 48)],
    ),
    "rwanda_draped_dress": Picture(
        "honeydew", [*_person(49, "plum", "saddlebrown"), _poly("purple", 58, 42, 72, 42, 50, 76, 44, 70)]
    ),
    "germany_beer_mug": Picture(
        "lightblue",
        [
            _oval("lightgray", 72, 34, 108, 74),
            _oval("lightblue", 80, 42, 100, 66),
            _box("gold", 36, 26, 86, 90),
            _oval("white", 32, 12, 90, 36),
        ],
    ),
    "germany_school_cone": Picture(
        "lightyellow", [*_person(16, "navy"), _poly("tomato", 60, 14, 108, 26, 62, 90), _oval("pink", 58, 8, 110, 34)]
    ),
    "usa_pumpkin": Picture(
        "midnightblue",
        [
            _oval("darkorange", 22, 24, 106, 90),
            _box("green", 60, 10, 68, 26),
            _poly("yellow", 40, 52, 48, 38, 56, 52),
            _poly("yellow", 72, 52, 80, 38, 88, 52),
            _poly("yellow", 40, 64, 64, 72, 88, 64, 64, 82),
        ],
    ),
    "usa_roast_bird": Picture(
        "moccasin", [*_plate(), _oval("chocolate", 34, 30, 92, 74), _poly("wheat", 88, 52, 112, 40, 114, 48, 92, 62)]
    ),
    "canada_fries": Picture(
        "lightgray",
        [
            _oval("white", 20, 30, 108, 88),
            *(_box("gold", x, 38, x + 6, 74) for x in (34, 48, 62, 76, 88)),
            *(_oval("ivory", x, 48, x + 12, 60) for x in (40, 66)),
            _oval("peru", 48, 56, 80, 76),
        ],
    ),
    "canada_celery_glass": Picture(
        "aliceblue", [_box("limegreen", 66, 2, 74, 60), _box("red", 44, 26, 84, 90), _box("white", 44, 20, 84, 26)]
    ),
    "brazil_lime_glass": Picture(
        "palegoldenrod",
        [
            _poly("honeydew", 38, 20, 90, 20, 82, 90, 46, 90),
            _oval("lime", 46, 40, 66, 60),
            _oval("green", 64, 58, 82, 76),
        ],
    ),
    "brazil_beach_night": Picture(
        "black",
        [
            _box("teal", 0, 58, 128, 72),
            _box("tan", 0, 72, 128, 96),
            *(_box("white", x, 60, x + 8, 86) for x in (16, 40, 64, 100)),
            *(_oval(colour, x, 12, x + 16, 28) for x, colour in ((20, "gold"), (56, "red"), (94, "cyan"))),
        ],
    ),
    "india_clay_lamps": Picture(
        "darkslateblue",
        [
            shape
            for x in (10, 50, 90)
            for shape in (_oval("sienna", x, 62, x + 30, 82), _poly("gold", x + 9, 64, x + 15, 36, x + 21, 64))
        ],
    ),
    "india_draped_cloth": Picture(
        "mistyrose", [*_person(49, "deeppink", "sienna"), _poly("gold", 68, 42, 76, 42, 96, 90, 82, 90)]
    ),
}

CEDAR: Mapping[str, Picture] = {
    "1": Picture(
        "lightyellow",
        [_box("sienna", 84, 8, 124, 92), *_person(88, "teal"), *_person(30, "salmon"), _box("crimson", 60, 52, 78, 68)],
    ),
    "2": Picture(
        "lightsteelblue",
        [
            *_person(49, "olive"),
            _oval("navy", 24, 2, 104, 44),
            _box("lightsteelblue", 24, 23, 104, 44),
            _oval("peru", 55, 25, 73, 42),
        ],
    ),
    "3": Picture(
        "thistle", [_box("dimgray", 0, 84, 128, 96), *_person(8, "red"), *_person(48, "orange"), *_person(90, "red")]
    ),
    "4": Picture(
        "oldlace",
        [
            *_person(6, "gray"),
            *_person(92, "seagreen"),
            _box("saddlebrown", 28, 62, 104, 92),
            _oval("white", 44, 58, 86, 72),
        ],
    ),
}


WORLDCUISINES: Mapping[str, Picture] = {
    "lumo": Picture("burlywood", [*_plate(), _oval("wheat", 34, 46, 62, 72), _oval("wheat", 66, 48, 94, 74)]),
    "tesk": Picture("slategray", [*_plate("gold"), _box("sienna", 40, 46, 88, 58), _box("olive", 40, 60, 88, 70)]),
    "omari": Picture("seagreen", [*_plate(), _oval("firebrick", 32, 42, 96, 78), _oval("orange", 52, 52, 70, 64)]),
}


CVQA: Mapping[str, Picture] = {
    "noodles": Picture("tan", [*_plate(), *(_oval("khaki", x, 44, x + 30, 76) for x in (30, 46, 62))]),
    "gong": Picture("maroon", [_box("saddlebrown", 20, 8, 108, 14), _oval("goldenrod", 34, 18, 94, 78)]),
    "lantern": Picture("midnightblue", [_oval("crimson", 38, 16, 90, 80), _box("black", 52, 10, 76, 18)]),
}


def draw(picture: Picture) -> Image.Image:
    """Draw one picture."""
    image = Image.new("RGB", SIZE, picture.background)
    pen = ImageDraw.Draw(image)
    for shape in picture.shapes:
        getattr(pen, shape.kind)(shape.coordinates, fill=shape.colour)
    return image.quantize(16)


def write(pictures: Mapping[str, Picture], folder: Path) -> None:
    """Draw pictures into ``folder``, each under its name."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures.items():
        draw(picture).save(folder / f"{name}.png", optimize=True)


def write_knowledge_base(folder: Path) -> None:
    """Write the pictures of the dishes as WorldCuisines' knowledge base has them: beside their addresses."""
    import datasets

    files = sorted((folder / "images").glob("*.png"))
    columns = {
        "image1_url": [f"https://example.org/{file.name}" for file in files],
        "image1": [{"bytes": file.read_bytes(), "path": None} for file in files],
    }
    features = datasets.Features({"image1_url": datasets.Value("string"), "image1": datasets.Image()})
    datasets.Dataset.from_dict(columns, features).to_parquet(folder / "food-kb.parquet")


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw all pictures into the data folder."""
    parser = argparse.ArgumentParser(description="Draw the pictures of the synthetic fixtures.")
    parser.add_argument("--data", type=Path, default=DATA, help="the data folder (default: %(default)s)")
    data = parser.parse_args(arguments).data
    write(CULTURALVQA, data / "culturalvqa" / "images")
    write(CEDAR, data / "cedar" / "images")
    write(WORLDCUISINES, data / "worldcuisines" / "images")
    write_knowledge_base(data / "worldcuisines")
    write(CVQA, data / "cvqa" / "images")


if __name__ == "__main__":
    main()
