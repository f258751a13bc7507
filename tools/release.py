"""Cuts a release, and checks what is to be uploaded.

python tools/release.py cut 0.2.0         # sets the version, and gives the changelog's latest section its number
python tools/release.py check [v0.2.0]    # looks into dist/; a tag must be that of the version
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tarfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
_UNRELEASED = "## Unreleased\n"
_VERSION = re.compile(r'^__version__ = "(?P<version>[^"]+)"$', re.MULTILINE)
_IN_SDIST = {
    *("culture_tasks", "judges", "task_yamls", "culture_tasks.egg-info"),
    *("LICENSE", "MANIFEST.in", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg", "setup.py"),
}


def version(root: Path) -> str:
    """Returns the version of the package."""
    match = _VERSION.search((root / "culture_tasks" / "__init__.py").read_text(encoding="utf-8"))
    if match is None:
        raise SystemExit("culture_tasks/__init__.py has no line that sets __version__.")
    return match["version"]


def cut(root: Path, new: str) -> None:
    """Sets the version, and gives the changelog's latest section its number and date."""
    from packaging.version import InvalidVersion, Version

    try:
        if Version(new) <= Version(version(root)):
            raise SystemExit(f"VERSION={new}: expected a version above {version(root)}.")
    except InvalidVersion:
        raise SystemExit(f"VERSION={new}: expected a version such as 0.2.0.") from None
    command = ["git", "status", "--porcelain"]
    if subprocess.run(command, cwd=root, capture_output=True, check=True).stdout:  # noqa: S603 - the developer's git
        raise SystemExit("There are changes that aren't committed. Commit them first.")
    changelog = root / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    before, header, after = text.partition(_UNRELEASED)
    if not header or not after.partition("\n## ")[0].strip():
        raise SystemExit(f"CHANGELOG.md has nothing below {_UNRELEASED.strip()!r} to release.")
    module = root / "culture_tasks" / "__init__.py"
    module.write_text(_VERSION.sub(f'__version__ = "{new}"', module.read_text(encoding="utf-8")), encoding="utf-8")
    numbered = f"{before}{_UNRELEASED}\n## {new} ({datetime.now(UTC):%Y-%m-%d})\n{after}"
    changelog.write_text(numbered, encoding="utf-8")


def check(root: Path, tag: str = "") -> None:
    """Looks whether ``dist/`` has one sdist and one wheel of the version, and nothing in them that doesn't belong."""
    number = version(root)
    if tag and tag != f"v{number}":
        raise SystemExit(f"The tag {tag} isn't that of the version {number}: expected v{number}.")
    sdist, wheel = f"culture_tasks-{number}.tar.gz", f"culture_tasks-{number}-py3-none-any.whl"
    there = sorted(path.name for path in (root / "dist").glob("*.*") if path.name != ".gitignore")
    if there != sorted([sdist, wheel]):
        raise SystemExit(f"dist/ has {', '.join(there) or 'no files'}. Expected {sdist} and {wheel}.")
    with tarfile.open(root / "dist" / sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames() if "/" in name]
    with zipfile.ZipFile(root / "dist" / wheel) as archive:
        wheel_names = archive.namelist()
    allowed = {"culture_tasks", f"culture_tasks-{number}.dist-info"}
    stray = [name for name in names if name.partition("/")[0] not in _IN_SDIST]
    stray += [name for name in wheel_names if name.partition("/")[0] not in allowed]
    stray += [name for name in (*names, *wheel_names) if "__pycache__" in name or "/." in f"/{name}"]
    if stray:
        raise SystemExit(
            f"dist/ holds {', '.join(stray[:5])}{', …' if len(stray) > 5 else ''}, which doesn't belong there."
        )
    sys.stdout.write(f"{sdist}: {len(names)} entries; {wheel}: {len(wheel_names)} entries\n")


def main() -> None:
    """Cuts or checks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(dest="step", required=True)
    steps.add_parser("cut").add_argument("version")
    steps.add_parser("check").add_argument("tag", nargs="?", default="")
    options = parser.parse_args()
    if options.step == "cut":
        cut(ROOT, options.version)
    else:
        check(ROOT, options.tag)


if __name__ == "__main__":
    main()
