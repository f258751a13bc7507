"""The page of a sheet in a browser: filled in by keyboard, kept, saved, and collected."""

from __future__ import annotations

import asyncio
import json

import pytest
from PIL import Image
from support.browser import find_chromium, on_page
from support.toy_culture import project, written

from culture_tasks.cultures.collecting import collect
from culture_tasks.cultures.giving_out import give_out

CHROMIUM = find_chromium()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")]

CARD = "document.querySelectorAll('article.screen:not([hidden]) .card')"
SAID = "document.querySelector('#said').textContent"


async def collected(tab, folder, opened, name):
    """Saves the page, and collects the file that it saves."""
    await tab.press("s", 83, "", modifiers=2)
    async with asyncio.timeout(20):
        while not (folder / name).is_file():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.05)
    return [line.outcome for line in collect(opened, [folder / name]).lines]


async def type_into(tab, selector, text):
    await tab.run(f"document.querySelector('article.screen:not([hidden]) {selector}').focus()")
    await tab.call("Input.insertText", text=text)


def test_a_writer_fills_in_a_page_from_right_to_left(tmp_path):
    opened = project(tmp_path / "toyland", "a", language="ar")
    labels = {"{done} of {all} filled in": "{done} من {all}", "Save the answers": "حفظ"}
    content = {"direction": "rtl", "labels": labels}
    (opened.folder / "labels.json").write_text(json.dumps(content), encoding="utf-8")
    give_out(opened, opened.state(), "write", tmp_path / "out")

    async def steps(tab):
        assert await tab.run("getComputedStyle(document.body).direction") == "rtl"
        assert await tab.run(SAID) == "0 من 2"
        await type_into(tab, "[data-name=question] input", "ما هذا؟ 1")
        await type_into(tab, "[data-name=answers] textarea", "شاي\n قهوة ")
        await tab.run("document.activeElement.blur()")
        assert await tab.run(f"{CARD}[0].querySelector('[data-name=why]').hidden") is True
        await tab.press("2", 50, "2")
        assert await tab.run(f"{CARD}[0].querySelector('[data-name=why]').hidden") is False
        assert await tab.run(SAID) == "0 من 2 · 1 not complete yet · not saved yet"
        await tab.press("Enter", 13, "", modifiers=2)
        assert await tab.run("document.activeElement.textContent") == "2 of 2"
        await tab.run(f"{CARD}[0].querySelector('.leave').click()")
        assert await tab.run(SAID) == "1 من 2 · 1 not complete yet · not saved yet"
        await tab.press("Enter", 13, "", modifiers=10)  # with Ctrl and Shift
        assert await tab.run("document.querySelectorAll('.missing').length") == 1
        await tab.press("1", 49, "1")
        assert await tab.run("document.querySelectorAll('.missing').length") == 0
        await type_into(tab, "[data-name=answers] textarea", "\n3\n4")  # one too many
        assert (await tab.run(SAID)).startswith("1 من 2 · 1 not complete")
        await tab.run("document.activeElement.value = 'شاي\\n قهوة '")
        await type_into(tab, "[data-name=answers] textarea", " ")
        assert (await tab.run(SAID)).startswith("2 من 2")
        assert await tab.run("document.documentElement.scrollWidth <= innerWidth") is True
        await tab.resize(390, 800)
        assert await tab.run("document.documentElement.scrollWidth <= innerWidth") is True
        assert await collected(tab, tmp_path / "saved", opened, "write-a-1.json") == ["new", "skipped"]
        assert await tab.run(SAID) == "2 من 2"

    on_page(tmp_path, tmp_path / "out" / "write-a-1.html", steps)
    assert opened.state().entries_of("write", "a-1")[0].values == {
        "question": "ما هذا؟ 1",
        "answers": ["شاي", "قهوة"],
        "kind": "saying",
    }


def test_a_group_is_rated_in_order_with_ties(tmp_path):
    opened = project(tmp_path / "toyland", "a", "b")
    Image.new("RGB", (400, 300), "teal").save(opened.folder / "images" / "x.png")
    give_out(opened, opened.state(), "rate", tmp_path / "out")

    async def steps(tab):
        assert await tab.run("document.querySelector('img').naturalWidth") == 400
        assert await tab.run("document.querySelectorAll('h3').length") == 4  # the question once, and three responses
        for key in ("3", "0", "3"):
            await tab.press(key, ord(key), key)
            await tab.run("document.activeElement.blur()")
        ranks = f"[...{CARD}].map((card) => card.querySelector('.rank').textContent)"
        tied = "Place 2, with others"
        assert await tab.run(ranks) == [tied, "Place 1", tied]
        order = f"[...{CARD}].map((card) => card.dataset.row)"
        first, second, third = await tab.run(order)
        await tab.run("document.querySelector('.order').click()")
        assert await tab.run(order) == [second, first, third]
        await tab.run("document.querySelector('.card .clear').click()")
        assert await tab.run(SAID) == "2 of 3 filled in · not saved yet"
        assert await collected(tab, tmp_path / "saved", opened, "rate-a-1.json") == ["new", "new"]

    on_page(tmp_path, tmp_path / "out" / "rate-a-1.html", steps)
    assert sorted(one.values["rating"] for one in opened.entries()) == [3, 3]


def test_a_page_keeps_what_is_filled_in_and_goes_on_from_a_file(tmp_path):
    opened = project(tmp_path / "toyland", "a", "b")
    opened.add(written(2, "a"), "test")
    sheet = give_out(opened, opened.state(), "check", tmp_path / "out").sheets[0]
    first, second = sheet.rows

    async def steps(tab):
        assert await tab.run(SAID) == "0 of 2 filled in"  # prefilled, and nobody has looked at it
        await tab.press("1", 49, "1")
        state = "JSON.parse(localStorage.getItem(document.body.dataset.store)).rows"
        assert (await tab.run(state))[first]["values"]["known"] is True
        await tab.run("window.onbeforeunload = null; document.querySelector('#save').click()")
        loaded = len(tab.of("Page.loadEventFired"))
        await tab.call("Page.reload")
        async with asyncio.timeout(20):
            while len(tab.of("Page.loadEventFired")) == loaded:  # until then, there is no page to run a script on
                await tab.call("Browser.getVersion")
        assert await tab.run(SAID) == "1 of 2 filled in · not saved yet"
        rows = {second: {"values": {"rewritten": "New?", "known": False}}, "r0": {"skipped": ""}}
        content = json.dumps({"sheet": sheet.name, "rows": rows})
        await tab.run(
            f"""(() => {{ const files = new DataTransfer();
            files.items.add(new File([{json.dumps(content)}], "saved.json"));
            const input = document.querySelector("#load"); input.files = files.files;
            input.dispatchEvent(new Event("change")); }})()"""
        )
        await tab.until(f"{SAID}.startsWith('2 of 2')")
        name = f"{sheet.name}.json"
        (tmp_path / "saved" / name).unlink()
        assert await collected(tab, tmp_path / "saved", opened, name) == ["new", "new"]

    on_page(tmp_path, tmp_path / "out" / f"{sheet.name}.html", steps)
    entries = [one for one in opened.entries() if one.step == "check"]
    assert [one.values["rewritten"] for one in entries][1] == "New?"
    assert [one.values["known"] for one in entries] == [True, False]
