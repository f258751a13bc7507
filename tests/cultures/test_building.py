"""Files of a built culture: images without metadata, and the zip."""

from __future__ import annotations

import io
import zipfile

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from culture_tasks.benchmarks.cultures import BuiltCulture, hashes_of
from culture_tasks.cultures.building import pack, without_metadata
from culture_tasks.errors import DataError


@pytest.mark.parametrize(("kind", "suffix"), [("JPEG", "jpg"), ("PNG", "png"), ("WEBP", "webp")])
def test_an_image_loses_what_a_camera_wrote_and_stands_upright(tmp_path, kind, suffix):
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "Camera of Amina"  # to be turned by 90 degrees
    path = tmp_path / f"photo.{suffix}"
    Image.new("RGB", (40, 20), "red").save(path, kind, exif=exif)
    with Image.open(io.BytesIO(content := without_metadata(path))) as image:
        assert (image.format, image.size) == (kind, (20, 40))
        assert not image.getexif()
    assert b"Amina" not in content


@pytest.mark.parametrize(("mode", "transparent"), [("P", 0), ("RGB", (255, 0, 0))])
def test_a_transparent_colour_stays_when_metadata_are_removed(tmp_path, mode, transparent):
    image, text = Image.new("RGB", (4, 4), "red").convert(mode), PngInfo()
    text.add_text("Author", "a person")
    image.save(path := tmp_path / "a.png", pnginfo=text, transparency=transparent)
    with Image.open(path) as before, Image.open(io.BytesIO(without_metadata(path))) as after:
        assert after.text == {}
        assert after.convert("RGBA").tobytes() == before.convert("RGBA").tobytes()


def test_an_image_without_metadata_stays_as_it_is_and_a_text_is_none(tmp_path):
    path = tmp_path / "plain.png"
    Image.new("RGB", (40, 20), "red").save(path)
    assert without_metadata(path) == path.read_bytes()
    path.write_text("no image", "utf-8")
    with pytest.raises(DataError, match="not an image that can be read"):
        without_metadata(path)


def test_a_zip_holds_the_culture_and_is_the_same_each_time(tmp_path):
    folder = tmp_path / "built"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "test.json").write_text("[1]", "utf-8")
    (folder / "culture.json").write_text("{}", "utf-8")
    culture = BuiltCulture(
        folder=folder,
        name="n",
        title="N",
        like="care",
        way="",
        language="fa",
        place="IR",
        files=hashes_of(folder),
        marks=(),
        facts={},
    )
    for name in ("one.zip", "two.zip"):
        pack(culture, tmp_path / name)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        assert archive.namelist() == ["care_n/culture.json", "care_n/data/test.json"]
