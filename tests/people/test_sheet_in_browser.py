"""The sheet in a browser: rated by keyboard, and saved as a file that `score` reads."""

from __future__ import annotations

import asyncio
import csv
import json

import pytest
from support.browser import find_chromium, on_page
from support.checked_runs import write_care

from culture_tasks.cli.main import main

CHROMIUM = find_chromium()
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")


@pytest.fixture
def sheet(tmp_path):
    write_care(tmp_path / "runs", {"zh": 12, "ar": 12, "ja": 12})
    assert main(["spotcheck", "draw", str(tmp_path / "runs"), "-n", "18", "-o", str(tmp_path / "sheet")]) == 0
    return tmp_path / "sheet"


def rows_of(sheet):
    return json.loads((sheet / "spotcheck.json").read_text())["rows"]


async def saved(tab, folder, name):
    """Waits for a saved file and reads it."""
    await tab.until("document.querySelector('#status').textContent.endsWith('rated')")
    async with asyncio.timeout(20):
        while not (folder / name).is_file():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.05)
    with (folder / name).open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


SHOWN = "document.querySelector('article.response:not([hidden])')"


@pytest.mark.slow
def test_rated_by_keyboard_saved_and_scored(tmp_path, sheet, capsys):
    rows = rows_of(sheet)

    async def steps(tab):
        assert await tab.run("document.querySelectorAll('article.response:not([hidden])').length") == 1
        assert await tab.run("getComputedStyle(document.querySelector('article[lang=ar] .answer')).direction") == "rtl"
        for key, code in (("8", 56), ("0", 48), ("1", 49)):
            assert await tab.run(f"{SHOWN}.dataset.row") in [row["row"] for row in rows[:3]]
            await tab.press(key, code, key)
            await tab.press("ArrowRight", 39)
        await tab.press("ArrowUp", 38)  # the lowest, and one more
        await tab.press("ArrowUp", 38)
        await tab.press("c", 67, "c")
        await tab.call("Input.insertText", text='=cmd,"quoted" 好')
        await tab.press("Escape", 27)
        await tab.press("ArrowLeft", 37)
        assert await tab.run(f"{SHOWN}.dataset.row") == rows[2]["row"]
        await tab.press("u", 85, "u")
        assert await tab.run(f"{SHOWN}.dataset.row") == rows[4]["row"]
        await tab.press("s", 83, "", modifiers=2)
        assert await tab.run("document.querySelector('#status').textContent") == "Enter your name first."
        assert await tab.run("document.activeElement.id") == "rater"
        await tab.call("Input.insertText", text="Amína ../x")
        await tab.press("s", 83, "", modifiers=2)
        lines = await saved(tab, tmp_path / "saved", "ratings_Amína_x.csv")
        assert [(line["row"], line["rating"]) for line in lines] == [
            (row["row"], rating) for row, rating in zip(rows, ("8", "10", "1", "2"), strict=False)
        ]
        assert (lines[3]["comment"], lines[3]["rater"]) == ('\'=cmd,"quoted" 好', "Amína ../x")

    on_page(tmp_path, sheet / "sheet.html", steps)
    file = str(tmp_path / "saved" / "ratings_Amína_x.csv")
    assert main(["spotcheck", "score", str(sheet), file, "--results", str(tmp_path / "runs")]) == 0
    assert "14 of 18 drawn responses have no rating." in capsys.readouterr().out


@pytest.mark.slow
def test_ratings_are_kept_and_a_saved_file_goes_on(tmp_path, sheet):
    rows = rows_of(sheet)

    async def steps(tab):
        await tab.press("7", 55, "7")
        await tab.call("Page.reload")
        async with asyncio.timeout(20):
            while not tab.of("Page.javascriptDialogOpening"):  # the page warns: nothing is saved yet
                await tab.call("Browser.getVersion")
        loaded = len(tab.of("Page.loadEventFired"))
        await tab.call("Page.handleJavaScriptDialog", accept=True)
        async with asyncio.timeout(20):
            while len(tab.of("Page.loadEventFired")) == loaded:  # until then, there is no page to run a script on
                await tab.call("Browser.getVersion")
        await tab.until("document.querySelector('#status').textContent.startsWith('1 of')")
        text = f'row,rating,comment,rater\r\n{rows[5]["row"]},3,"a ""b"",\r\nc",Li\r\n'
        await tab.run(
            f"""(() => {{ const files = new DataTransfer();
            files.items.add(new File([{json.dumps(text)}], "saved.csv"));
            const input = document.querySelector("#load"); input.files = files.files;
            input.dispatchEvent(new Event("change")); }})()"""
        )
        await tab.until("document.querySelector('#status').textContent.startsWith('2 of')")
        article = f"document.querySelector('[data-row=\"{rows[5]['row']}\"]')"
        assert await tab.run(f"{article}.querySelector('input:checked').value") == "3"
        assert await tab.run(f"{article}.querySelector('textarea').value") == 'a "b",\nc'
        assert await tab.run("document.querySelector('#rater').value") == "Li"

    on_page(tmp_path, sheet / "sheet.html", steps)
