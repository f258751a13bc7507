"""Package layout: three folders of the repository become one import package.

Everything else about the distribution is declared in ``pyproject.toml``; setuptools reads the
folder mapping and the generated package list more simply from here.
"""

from setuptools import find_packages, setup

_ROOTS = {"culture_tasks": "culture_tasks", "culture_tasks.judges": "judges", "culture_tasks.task_yamls": "task_yamls"}


def _packages() -> list[str]:
    found = ["culture_tasks", *(f"culture_tasks.{name}" for name in find_packages("culture_tasks"))]
    found += ["culture_tasks.judges", *(f"culture_tasks.judges.{name}" for name in find_packages("judges"))]
    return [*found, "culture_tasks.task_yamls"]


setup(
    packages=_packages(),
    package_dir=_ROOTS,
    package_data={
        "culture_tasks": [
            "py.typed",
            "**/*.json",
            "**/*.jsonl",
            "**/*.txt",
            "**/*.png",
            "**/*.md",
            "**/*.html",
            "**/*.css",
            "**/*.js",
        ],
        "culture_tasks.judges": ["prompts/*.txt"],
        # Templates carry no ".yaml" suffix so that the harnesses don't index them: name them, or they stay behind.
        "culture_tasks.task_yamls": ["**/*.yaml", "**/_*_template_yaml", "**/*.jsonl"],
    },
)
