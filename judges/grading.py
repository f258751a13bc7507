"""From replies to a verdict, without any input or output: what to ask next, and what the replies add up to."""

from __future__ import annotations

from culture_tasks.judges.completions import Completion, Failure
from culture_tasks.judges.rubrics import Message, Rubric
from culture_tasks.judges.verdicts import JudgeItem, Usage, Verdict
from culture_tasks.text import without_reasoning


class Grading:
    """One verdict in the making.

    Ask for a completion of :meth:`messages` as fresh sample number :attr:`sample`, hand it to :meth:`take`, and go on
    until there is a verdict. A reply that was cut off, or holds no verdict without doubt, is asked again with a
    reminder of the format; each reply is read on its own.

    Attributes:
        rubric: How the item is graded.
        item: What is graded.
        endpoint: Where the judge is asked (see :attr:`Verdict.endpoint`).
        sample: Number of the fresh sample.
    """

    __slots__ = (
        "_ask_again",
        "_attempts",
        "_delimiters",
        "_reminder",
        "_usage",
        "endpoint",
        "item",
        "rubric",
        "sample",
    )

    def __init__(self, rubric: Rubric, item: JudgeItem, *, endpoint: str, delimiters: bool, ask_again: int) -> None:
        self.rubric = rubric
        self.item = item
        self.endpoint = endpoint
        self.sample = 0
        self._delimiters = delimiters
        self._reminder: list[Message] = []
        self._ask_again = ask_again
        self._attempts = 0
        self._usage = Usage()

    def messages(self, secret: str = "") -> list[Message]:
        """Returns what to ask now, made anew each time: prompts are long, and gradings are many.

        Args:
            secret: What the delimiters are made from (see :func:`~culture_tasks.judges.rubrics.delimited`).
        """
        return [*self.rubric.messages(self.item, delimiters=self._delimiters, secret=secret), *self._reminder]

    def texts(self) -> list[object]:
        """Returns what the messages are made of besides the rubric's wording, as JSON data."""
        item = self.item
        return [item.question, item.references, item.response, item.language, self._reminder]

    def take(self, reply: Completion | Failure, model: str, attempts: int, *, cached: bool = False) -> Verdict | None:
        """Takes a reply into account.

        Args:
            reply: The answer to :meth:`messages`.
            model: Model name that was asked for.
            attempts: How often the judge was asked for this reply in this run.
            cached: Whether the reply was read from the cache.

        Returns:
            The verdict, or None where the judge is to be asked again.
        """
        self._attempts += attempts
        if isinstance(reply, Failure):
            return self._verdict_without_reply(reply)
        self._usage += reply.usage
        # What was cut off may have been about to say something else: it is no verdict, whatever can be read in it.
        reading = None if reply.is_cut_off else self.rubric.read(reply.text)
        if reading is None and self.sample < self._ask_again:
            self._remind(reply.text)
            return None
        return Verdict(
            "unparsable" if reading is None else "scored",
            None if reading is None else float(reading.rating),
            rationale=reply.text.strip() if reading is None else reading.rationale,
            completion=reply.text,
            error=_unreadable(reply) if reading is None else None,
            usage=self._usage,
            attempts=self._attempts,
            asked_again=self.sample > 0,
            cached=cached and self._attempts == 0,
            reply_model=reply.model if reply.model != model else None,
            endpoint=self.endpoint,
        )

    def _remind(self, text: str) -> None:
        text = without_reasoning(text)
        # An endpoint may refuse an empty message: nothing to remind of, so the same question gets a fresh sample.
        self._reminder = self.rubric.reminder_messages(text) if text.strip() else []
        self.sample += 1

    def _verdict_without_reply(self, failure: Failure) -> Verdict:
        return Verdict(
            failure.outcome,
            error=failure.error,
            usage=self._usage,
            attempts=self._attempts,
            asked_again=self.sample > 0,
            endpoint=self.endpoint,
        )


def _unreadable(reply: Completion) -> str:
    if reply.is_cut_off:
        return "the reply was cut off at the largest number of tokens"
    return "the reply holds no rating that can be read without doubt"
