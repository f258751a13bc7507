"""Images are found inside the data's folder and decoded before a model sees one."""

from __future__ import annotations

import hashlib
import io
import os
import zlib

import datasets
import numpy as np
import pytest
from PIL import Image, ImageFile

from culture_tasks.data.files import Rows
from culture_tasks.data.images import Images, as_rgb, read_image
from culture_tasks.errors import DataError

MOST = 178_956_970


def encoded(kind="PNG", colour="red"):
    buffer = io.BytesIO()
    image = Image.effect_noise((400, 300), 60) if colour == "noise" else Image.new("RGB", (90, 60), colour)
    image.save(buffer, kind)
    return buffer.getvalue()


def embedded(*cells, local=True):
    features = datasets.Features({"picture": datasets.Image(decode=False)})
    column = datasets.Dataset.from_dict({"picture": cells}, features)
    return Images(Rows("data/test.parquet", [{}] * len(cells), column, local=local), [None] * len(cells))


def files(folder, *names):
    return Images(Rows("data/test.json", [{}] * len(names), folder=folder), names)


def problems(images, seen=None):
    return list(images.problems(MOST, set() if seen is None else seen))


def refused(images, most=MOST):
    with pytest.raises(DataError) as caught:
        images.column(most)
    return str(caught.value)


def test_files_are_found_in_the_folder_and_in_its_images_folder(tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "a.png").write_bytes(encoded(colour="red"))
    (tmp_path / "images" / "b.jpg").write_bytes(encoded("JPEG", colour="white"))
    names = ["a.png", "b.jpg", "images/b.jpg", str(tmp_path / "a.png")] * 20  # more than are checked at once
    seen = set()
    assert problems(files(tmp_path, *names), seen) == []
    red, white = (255, 0, 0), (255, 255, 255)
    pixels = [row["image"].convert("RGB").getpixel((0, 0)) for row in files(tmp_path, *names).column()]
    assert pixels == [red, white, white, red] * 20
    assert seen == {tmp_path / name for name in names}
    (tmp_path / "a.png").write_bytes(b"broken")
    assert problems(files(tmp_path, *names), seen) == []  # of another table, with the same images
    assert "broken image" in refused(files(tmp_path, "a.png"))


def test_a_row_without_an_image_is_refused_and_a_missing_file_is_named_with_the_row_and_both_folders(tmp_path):
    for name in (None, ""):
        said = refused(files(tmp_path, name))
        assert said.startswith(f"data/test.json, row 1, field 'image': found nothing in {tmp_path} or ")
    assert "row 1, field 'image': found an empty image" in refused(embedded(None))
    (tmp_path / "a.png").write_bytes(encoded())
    for name in ("b.png", ".", "a\0.png", "a\ud800.png", "iVBORw0KGgo/" * 500):
        said = refused(files(tmp_path, "a.png", name))
        assert said.startswith("data/test.json, row 2, field 'image': no file ")
        assert f"in {tmp_path} or {tmp_path / 'images'}. Expected an image file." in said
        assert len(said) < 600


def test_a_file_outside_the_folder_is_refused(tmp_path):
    folder, outside = tmp_path / "data", tmp_path / "secret.png"
    (folder / "images").mkdir(parents=True)
    outside.write_bytes(encoded())
    (folder / "link.png").symlink_to(outside)
    for name in ("../secret.png", str(outside), "link.png"):
        assert f"is outside {folder}. Expected a file inside it" in refused(files(folder, name))
    # a folder may be a link, the data folder itself or one below it
    (tmp_path / "alias").symlink_to(tmp_path)
    (folder / "linked").symlink_to(tmp_path)
    assert problems(files(tmp_path / "alias", "secret.png")) == problems(files(folder, "linked/secret.png")) == []


@pytest.mark.parametrize(
    "content",
    [b"", encoded(colour="noise")[:-3000], encoded("JPEG", "noise")[:20_000], encoded()[:50] + bytes(20)],
    ids=["empty", "truncated_png", "truncated_jpeg", "damaged_png"],
)
@pytest.mark.parametrize("lenient", [False, True])
def test_a_broken_image_is_named_with_the_row_and_what_to_do(tmp_path, monkeypatch, content, lenient):
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", lenient)  # as lmms-eval sets it when it is imported
    (tmp_path / "a.png").write_bytes(encoded())
    (tmp_path / "b.png").write_bytes(content)
    said = refused(files(tmp_path, "a.png", "b.png", "a.png"))
    assert said.startswith("data/test.json, row 2, field 'image': ")
    assert ("broken image (" if content else "found an empty image") in said
    assert (said.endswith("Replace the image, or remove the row."), "object at" in said) == (True, False)
    whole, broken = ({"bytes": one, "path": None} for one in (encoded(), content))
    second, third = problems(embedded(whole, broken, None))
    assert second.startswith("data/test.parquet, row 2, field ")
    assert third.startswith("data/test.parquet, row 3, field 'image': found an empty image. Expected one of AVIF")
    assert lenient == ImageFile.LOAD_TRUNCATED_IMAGES  # other tasks of the harness go on as they did


CLEAR = np.array([[[0, 0, 0, 0], [0, 0, 0, 255], [255, 0, 0, 128], [9, 8, 7, 255]]], "u1")
PALETTE = Image.new("P", (4, 1))
PALETTE.putpalette([0, 0, 0, 0, 0, 0, 255, 0, 0, 9, 8, 7])
PALETTE.putdata([0, 1, 2, 3])
WHITE, BLACK, RED = (255, 255, 255), (0, 0, 0), (255, 0, 0)


@pytest.mark.parametrize(
    ("kind", "image", "options", "seen"),
    [
        ("PNG", Image.fromarray(CLEAR), {}, [WHITE, BLACK, (255, 127, 127), (9, 8, 7)]),
        ("PNG", PALETTE, {"transparency": bytes([0, 255, 128])}, [WHITE, BLACK, (255, 127, 127), (9, 8, 7)]),
        ("PNG", Image.fromarray(CLEAR).convert("RGB"), {"transparency": RED}, [BLACK, BLACK, WHITE, (9, 8, 7)]),
        ("TIFF", Image.fromarray(CLEAR).convert("RGB").convert("CMYK"), {}, [BLACK, BLACK, RED, (9, 8, 7)]),
        ("PNG", Image.fromarray(np.array([[0, 0xFFFF]], "u2")), {}, "Pillow's mode I;16. Expected RGB with 8 bits"),
        ("TIFF", Image.fromarray(np.float32([[0.0, 1.0]])), {}, "Pillow's mode F"),
        ("TIFF", Image.new("RGB", (4, 1)).convert("LAB"), {}, "Pillow's mode LAB"),
    ],
)
def test_a_model_sees_an_image_as_people_do_or_the_image_is_refused(tmp_path, kind, image, options, seen):
    image.save(tmp_path / "a", kind, **options)
    found = problems(files(tmp_path, "a"))
    if isinstance(seen, str):
        assert found[0].startswith(f"data/test.json, row 1, field 'image': found {seen}")
    else:
        pixels = np.asarray(read_image((tmp_path / "a").read_bytes()))[0].tolist()
        assert (found, list(map(tuple, pixels))) == ([], seen)


def test_premultiplied_and_palette_transparency_lie_on_white():
    for mode in ("La", "RGBa", "PA"):
        assert as_rgb(Image.new(mode, (1, 1))).getpixel((0, 0)) == WHITE


def test_what_an_image_must_not_be_is_refused_unread(tmp_path, monkeypatch):
    monkeypatch.setattr("PIL.EpsImagePlugin.Ghostscript", lambda *_: pytest.fail("ran"))
    (tmp_path / "a.png").write_bytes(encoded("EPS"))
    assert "found the format EPS. Expected one of AVIF, BMP" in refused(files(tmp_path, "a.png"))
    os.truncate(tmp_path / "a.png", 10**12)
    assert "'a.png' has 1,000,000,000,000 bytes. Expected 400,000,000" in refused(files(tmp_path, "a.png"))
    # A file of a few bytes claims a size: decoded, it would be called truncated.
    content, side = encoded(), 12_000
    header = content[12:16] + side.to_bytes(4, "big") * 2 + content[24:29]
    claimed = content[:12] + header + zlib.crc32(header).to_bytes(4, "big") + content[33:]
    (tmp_path / "a.png").write_bytes(claimed)
    assert refused(files(tmp_path, "a.png"), 100_000_000) == (
        "data/test.json, row 1, field 'image': found 12,000 x 12,000 pixels, 144,000,000 in all. Expected "
        "100,000,000 at most. Scale the image down, or set CULTURE_TASKS_IMAGE_PIXELS."
    )
    cells = [{"bytes": None, "path": str(tmp_path / "a.png")}]  # any file of the machine
    assert "found an empty image" in refused(embedded(*cells))
    assert "broken image" in refused(embedded(*cells, local=False))


def test_keys_tell_images_apart_by_their_content_and_do_without_the_images_that_are_not_needed(tmp_path):
    (tmp_path / "images").mkdir()
    for name, colour in (("images/a.png", "red"), ("copy.png", "red"), ("other.png", "blue")):
        (tmp_path / name).write_bytes(encoded(colour=colour))
    red, blue = (hashlib.sha256(encoded(colour=colour)).hexdigest()[:16] for colour in ("red", "blue"))
    names = ["a.png", "images/a.png", "copy.png", "other.png"]
    assert files(tmp_path, *names).keys() == [red, red, red, blue]
    cells = [{"bytes": encoded(), "path": None}, None, {"bytes": b"", "path": "other.png"}]
    assert embedded(*cells).keys() == [red, "", ""]
    keys = files(tmp_path, "a.png", "gone.png", "gone.png", "../a.png", None).keys()
    assert (keys[0], keys[1], keys[4]) == (red, keys[2], "")
    assert len(set(keys)) == 4
