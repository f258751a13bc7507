"""What the evaluated model is asked (CARE, section 4 and Appendix B)."""

from __future__ import annotations

from culture_tasks.benchmarks.care.documents import PEOPLE, CareDoc, PromptName
from culture_tasks.benchmarks.interface import Prompt
from culture_tasks.prompt_files import load


def render(prompt: PromptName, doc: CareDoc) -> Prompt:
    """Returns the prompt for a question: one user message.

    The paper shows each template as one block and doesn't say which lines are a system message; all of it is sent as
    the user's message, so that it works with every chat template.
    """
    people = {str(language): name for language, name in PEOPLE.items()}[doc["language"]]
    return Prompt((load(__package__, f"{prompt}.v1").fill({"people": people, "question": doc["question"]}),))
