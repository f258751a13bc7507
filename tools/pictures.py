"""Makes the pictures of docs/pictures/ anew from the predictions that WorldCuisines' authors published, and from toys.

python speed/worldcuisines_predictions.py REPOSITORY -o PREDICTIONS    # their repository on GitHub, scored here
make demo
python tools/pictures.py PREDICTIONS demo_output

Needs Chromium. The first folder has result and sample files of real models; only the sheet for raters shows toy data.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import html
import io
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.browser import find_chromium, open_tab  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"
MODELS = (
    *("GPT-4o", "Gemini 1.5 Flash", "Llama-3.2-90B", "GPT-4o mini", "Qwen2-VL-7B", "Aria", "Pixtral-12B"),
    *("Molmo-7B-D", "LLaVA-1.6-13B", "LLaVA-1.6-7B"),
)
GATE = ("GPT-4o mini", "Qwen2-VL-7B")
FEW = ("GPT-4o", "Qwen2-VL-7B", "LLaVA-1.6-7B")
FIGURES = {"report": ("overview", "countries"), "few": ("worldcuisines_language",)}
_WIDEST, _MOST_BYTES = 1_600, 290_000

_TWO_MODELS = """
(async () => {
  const pause = () => new Promise((done) => setTimeout(done, 800));
  document.querySelector("#browse").click();
  await pause();
  const form = document.querySelector("#filters form");
  const choose = async (name, value) => {
    form.elements[name].value = value;
    form.elements[name].dispatchEvent(new Event("input", { bubbles: true }));
    await pause();
  };
  await choose("model", "GPT-4o");
  await choose("beside", "Qwen2-VL-7B");
  await choose("pairs", "differs");
  await choose("language", "en");
})()
"""


def main() -> int:
    """Makes all pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("predictions", type=Path, metavar="PREDICTIONS", help="result and sample files by model")
    parser.add_argument("demo", type=Path, metavar="DEMO", help="what `make demo` wrote")
    options = parser.parse_args()
    PICTURES.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        asyncio.run(_make(options.predictions.resolve(), options.demo.resolve(), Path(folder)))
    return 0


async def _make(predictions: Path, demo: Path, folder: Path) -> None:
    runs = [str(predictions / model) for model in MODELS]
    _call("report", *runs, "-o", "report", "--formats", "html,png", "--published", cwd=folder)
    _call("report", *(str(predictions / model) for model in FEW), "-o", "few", "--formats", "png", cwd=folder)
    for report, keys in FIGURES.items():
        for key in keys:
            _save(Image.open(folder / report / "figures" / f"{key}.png"), f"figure_{key}")
    _call("spotcheck", "draw", str(demo), "-n", "55", "--tasks", "culturalvqa", "-o", "sheet", cwd=folder)
    gate = ("compare", *GATE, "--fail-on-regression")
    (folder / "gate.html").write_text(_terminal(gate, _call(*gate, cwd=predictions, status=1)), "utf-8")
    page, sheet = folder / "report" / "report.html", folder / "sheet" / "sheet.html"
    async with open_tab(find_chromium() or "", folder / "profile") as tab:
        await _photograph(tab, page, "report", 1280, 1080)
        await _photograph(tab, page, "report_dark", 1280, 600, prefers_color_scheme="dark")
        await _photograph(tab, page, "report_phone", 390, 780)
        await _photograph(tab, page, "samples", 1280, 900, script=_TWO_MODELS)
        await _photograph(tab, sheet, "sheet_spotcheck", 1000, 760)
        await _photograph(tab, folder / "gate.html", "gate", 1120, 760)


async def _photograph(
    tab: Any, page: Path, name: str, width: int, height: int, *, script: str = "", **features: str
) -> None:
    """Saves a picture of what a window shows of a page."""
    await tab.resize(width, height, **({"prefers_color_scheme": "light"} | features))
    await tab.call("Page.navigate", url="about:blank")
    await tab.open(page)
    await tab.run(script)
    shot = await tab.call("Page.captureScreenshot", format="png")
    _save(Image.open(io.BytesIO(base64.b64decode(shot["data"]))), name)


def _save(picture: Image.Image, name: str) -> None:
    """Saves a picture that a page can load quickly: smaller, or with fewer colours, where it must be."""
    if picture.width > _WIDEST:
        picture = picture.resize((_WIDEST, round(picture.height * _WIDEST / picture.width)), Image.Resampling.LANCZOS)
    path, picture = PICTURES / f"{name}.png", picture.convert("RGB")
    picture.save(path, optimize=True)
    if path.stat().st_size > _MOST_BYTES:
        picture.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(path, optimize=True)


def _call(*command: str, cwd: Path, status: int = 0) -> str:
    """Returns the output of ``culture-tasks`` with a command, which must end with a status."""
    program = Path(sys.executable).with_name("culture-tasks")
    command = (str(program), *command)
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    if done.returncode != status:
        raise SystemExit(f"{shlex.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def _terminal(command: Sequence[str], output: str) -> str:
    style = "body { background: #14171a; color: #e8eaed; font: 14px/1.4 monospace }"
    text = html.escape(f"$ culture-tasks {shlex.join(command)}\n{output}")
    return f'<!doctype html><meta charset="utf-8"><style>{style}</style><pre>{text}</pre>'


if __name__ == "__main__":
    sys.exit(main())
