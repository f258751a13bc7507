"""Reports of runs that were written by hand: of four models, and of hostile texts."""

from __future__ import annotations

import hashlib
from pathlib import Path

from support.reports import report_of
from support.sample_files import JUDGE, care_samples, vqa_record, vqa_samples, write_run

from culture_tasks.cli.main import main
from culture_tasks.report.model import Report

MODELS = ("Qwen3-VL-8B", "نموذج العربية ٣ (base)", "हिन्दी क्षत्रिय मॉडल", "中文模型 日本語モデル")
HOSTILE = (
    '=HYPERLINK("http://evil.test","x")',
    "\\input{/etc/passwd}\\write18{touch pwned}",
    "|x| [a](javascript:alert(1)) `c` **b**",
    "$x_1^2$ %comment & # ~ {\\bf",
    "نموذج 模型 モデル मॉडल ✓ \u202e",
    "line\nbreak\r\n| row",
    "[[ours]]-[x]",
    "\x1b[31mred\x07 half \ud800",
    "</script></style></title></table><script>window.canary=1</script><img src=x onerror='window.canary=1'>"
    '<svg onload=window.canary=1><a href="javascript:window.canary=1">x</a><iframe src=http://example.invalid/>'
    "<!-- ]]> @import \u2028\u2029\x00\x1d{{data}}{{style}} '\"`&amp;&#60;",
)


def chance(*texts: str) -> float:
    """A number from 0 to 1 that only depends on the texts."""
    return int(hashlib.sha256("|".join(texts).encode()).hexdigest()[:8], 16) / 0xFFFFFFFF


def toy_report(folder: Path) -> Report:
    """Four models on 44 items of CulturalVQA and 10 of CARE, of which the last model has few verdicts."""
    for number, model in enumerate(MODELS):
        samples = [
            {"record": vqa_record(at, float(chance(model, str(at)) > 0.4), image=f"image_{at}")} for at in range(44)
        ]
        ratings = [None if number == 3 and at % 2 else 2.0 + (at + number) % 8 for at in range(10)]
        write_run(folder / str(number), model, {"culturalvqa": samples, "care_zh": care_samples(ratings)})
    return report_of(folder, published=True)


def hostile_report(folder: Path) -> Path:
    """The report in all formats of runs in which every text of a model, a data set or a file name is hostile."""
    for number, text in enumerate(HOSTILE):
        run = {"response": text, "outcome": "scored", "rating": None, "rationale": text}
        more = {"judge": JUDGE | {"model": text}, "question": text, "references": [text, text], "runs": [run]}
        samples = vqa_samples([1.0, 0.0, 1.0, 1.0], **more)
        samples[0]["record"]["groups"]["country"] = text
        write_run(folder / str(number), text, {"culturalvqa": samples, f"task {number} |": samples})
    for name in ("=cmd|' calc'!A0.json", "\x1b[31mred\x07.json"):
        (folder / name).write_text("{", encoding="utf-8")
    output = folder / "report"
    command = ["report", str(folder), "-o", str(output), "--formats", "markdown,latex,csv,json,html"]
    assert main([*command, "--compare-anyway"]) == 0
    return output
