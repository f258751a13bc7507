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


def encoded(kind="PNG", colour="red"):
    buffer = io.BytesIO()
    image = Image.effect_noise((400, 300), 60) if colour == "noise" else Image.new("RGB", (90, 60), colour)
    image.save(buffer, kind)
    return buffer.getvalue()


def embedded(*cells, local=True):
    column = datasets.Dataset.from_dict(
        {"picture": cells}, datasets.Features({"picture": datasets.Image(decode=False)})
    )
    return Images(Rows("data/test.parquet", [{}] * len(cells), column, local=local), [None] * len(cells))


def files(folder, *names):
    return Images(Rows("data/test.json", [{}] * len(names), folder=folder), names)


MOST = 178_956_970


def load(folder, *names):
    return files(folder, *names).column(MOST)


def problems(images, seen=None):
    return list(images.problems(MOST, set() if seen is None else seen))


def refused(load, *arguments):
    with pytest.raises(DataError) as caught:
        load(*arguments)
    return str(caught.value)


def test_files_are_found_in_the_folder_and_in_its_images_folder(tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "a.png").write_bytes(encoded(colour="red"))
    (tmp_path / "images" / "b.jpg").write_bytes(encoded("JPEG", colour="white"))
    names = ["a.png", "b.jpg", "images/b.jpg", str(tmp_path / "a.png")] * 20  # more than are checked at once
    seen = set()
    assert problems(files(tmp_path, *names), seen) == []
    column = files(tmp_path, *names).column()
    assert column.column_names == ["image"]
    red, white = (255, 0, 0), (255, 255, 255)
    assert [row["image"].convert("RGB").getpixel((0, 0)) for row in column] == [red, white, white, red] * 20
    assert seen == {tmp_path / name for name in names}
    (tmp_path / "a.png").write_bytes(b"broken")
    assert problems(files(tmp_path, *names), seen) == []  # of another table, with the same images
    assert "broken image" in refused(load, tmp_path, "a.png")


def test_a_row_without_an_image_is_refused_and_a_missing_file_is_named_with_the_row_and_both_folders(tmp_path):
    for name in (None, ""):
        said = refused(load, tmp_path, name)
        assert said.startswith(f"data/test.json, row 1, field 'image': found nothing in {tmp_path} or ")
    assert "row 1, field 'image': found an empty image" in refused(embedded(None).column, MOST)
    (tmp_path / "a.png").write_bytes(encoded())
    for name in ("b.png", ".", "a\0.png", "a\ud800.png", "iVBORw0KGgo/" * 500):
        said = refused(load, tmp_path, "a.png", name)
        assert said.startswith("data/test.json, row 2, field 'image': no file ")
        assert f"in {tmp_path} or {tmp_path / 'images'}. Expected an image file." in said
        assert len(said) < 600


@pytest.mark.parametrize("name", ["../secret.png", "{outside}", "link.png"])
def test_a_file_outside_the_folder_is_refused(tmp_path, name):
    folder = tmp_path / "data"
    (folder / "images").mkdir(parents=True)
    outside = tmp_path / "secret.png"
    outside.write_bytes(encoded())
    (folder / "link.png").symlink_to(outside)
    said = refused(load, folder, name.format(outside=outside))
    assert f"is outside {folder}. Expected a file inside it" in said
    (tmp_path / "alias").symlink_to(tmp_path)  # the data folder itself may be a link, and so may a folder below it
    assert len(load(tmp_path / "alias", "secret.png")) == 1
    (folder / "linked").symlink_to(tmp_path)
    assert len(load(folder, "linked/secret.png")) == 1


BROKEN = {
    "zero_byte_png": b"",
    "truncated_png": encoded(colour="noise")[:-3000],
    "truncated_jpeg": encoded("JPEG", "noise")[:20_000],
    "damaged_png": encoded()[:50] + bytes(20) + encoded()[70:],
}


@pytest.fixture(params=[False, True], ids=["strict", "lenient"])
def pillow(request, monkeypatch):
    """Pillow as it comes, and as lmms-eval sets it when it is imported."""
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", request.param)
    return request.param


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_broken_image_is_named_with_the_row_and_what_to_do(tmp_path, content, pillow):
    (tmp_path / "a.png").write_bytes(encoded())
    (tmp_path / "b.png").write_bytes(content)
    said = refused(load, tmp_path, "a.png", "b.png", "a.png")
    assert said.startswith("data/test.json, row 2, field 'image': ")
    assert ("broken image (" if content else "found an empty image") in said
    assert (said.endswith("Replace the image, or remove the row."), "object at" in said) == (True, False)
    cells = [{"bytes": encoded(), "path": None}, {"bytes": content, "path": "b.png"}]
    assert refused(embedded(*cells).column, MOST).startswith("data/test.parquet, row 2, field ")
    *_, last = problems(embedded(*cells, None))
    assert last.startswith("data/test.parquet, row 3, field 'image': found an empty image. Expected one of AVIF")
    assert pillow == ImageFile.LOAD_TRUNCATED_IMAGES  # other tasks of the harness go on as they did


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
        (
            "PNG",
            Image.fromarray(np.array([[0, 0xFFFF]], "u2")),
            {},
            "Pillow's mode I;16. Expected RGB with 8 bits",
        ),
        ("TIFF", Image.fromarray(np.float32([[0.0, 1.0]])), {}, "Pillow's mode F"),
        ("TIFF", Image.new("RGB", (4, 1)).convert("LAB"), {}, "Pillow's mode LAB"),
    ],
)
def test_a_model_sees_an_image_as_people_do_or_the_image_is_refused(tmp_path, kind, image, options, seen):
    image.save(tmp_path / "a", kind, **options)
    found = problems(files(tmp_path, "a"))
    if isinstance(seen, str):
        (problem,) = found
        assert problem.startswith(f"data/test.json, row 1, field 'image': found {seen}")
        return
    assert found == []
    pixels = np.asarray(read_image((tmp_path / "a").read_bytes()))[0].tolist()
    assert list(map(tuple, pixels)) == seen


def test_premultiplied_and_palette_transparency_lie_on_white():
    for mode in ("La", "RGBa", "PA"):
        assert as_rgb(Image.new(mode, (1, 1))).getpixel((0, 0)) == (255, 255, 255)


def test_an_image_that_is_a_program_is_not_run(tmp_path, monkeypatch):
    monkeypatch.setattr("PIL.EpsImagePlugin.Ghostscript", lambda *_: pytest.fail("ran"))
    (tmp_path / "a.png").write_bytes(encoded("EPS"))
    assert "found the format EPS. Expected one of AVIF, BMP" in refused(load, tmp_path, "a.png")


def test_a_file_that_memory_cannot_hold_is_not_read(tmp_path):
    (tmp_path / "a.png").write_bytes(encoded())
    os.truncate(tmp_path / "a.png", 10**12)
    assert "'a.png' has 1,000,000,000,000 bytes. Expected 400,000,000" in refused(load, tmp_path, "a.png")
    assert len(files(tmp_path, "a.png").keys()) == 1


def test_an_image_of_too_many_pixels_is_refused_by_its_header(tmp_path):
    """A file of a few bytes claims the size: decoded, it would be called truncated."""
    content, side = encoded(), 12_000
    header = content[12:16] + side.to_bytes(4, "big") * 2 + content[24:29]
    claimed = content[:12] + header + zlib.crc32(header).to_bytes(4, "big") + content[33:]
    (tmp_path / "a.png").write_bytes(claimed)
    assert refused(files(tmp_path, "a.png").column, 100_000_000) == (
        "data/test.json, row 1, field 'image': found 12,000 x 12,000 pixels, 144,000,000 in all. Expected "
        "100,000,000 at most. Scale the image down, or set CULTURE_TASKS_IMAGE_PIXELS."
    )
    assert "broken image" in refused(load, tmp_path, "a.png")


def test_the_user_s_table_can_not_name_any_file_of_the_machine_as_embedded(tmp_path):
    (tmp_path / "a.png").write_bytes(encoded())
    cells = [{"bytes": None, "path": str(tmp_path / "a.png")}]
    assert "found an empty image" in refused(embedded(*cells).column, MOST)
    assert len(embedded(*cells, local=False).column(MOST)) == 1


def test_keys_tell_images_apart_by_their_content_and_do_without_the_images_that_are_not_needed(tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(encoded())
    (tmp_path / "copy.png").write_bytes(encoded())
    (tmp_path / "other.png").write_bytes(encoded(colour="blue"))
    red, blue = (hashlib.sha256(encoded(colour=colour)).hexdigest()[:16] for colour in ("red", "blue"))
    names = ["a.png", "images/a.png", "copy.png", "other.png"]
    assert files(tmp_path, *names).keys() == [red, red, red, blue]
    cells = [{"bytes": encoded(), "path": None}, None, {"bytes": b"", "path": "other.png"}]
    assert embedded(*cells).keys() == [red, "", ""]
    names = ["a.png", "gone.png", "gone.png", "../a.png", None]
    keys = files(tmp_path, *names).keys()
    assert (keys[0], keys[1], keys[4]) == (red, keys[2], "")
    assert len(set(keys)) == 4
