"""The interface to the spans of runs: the caller that opens the queues may pass a function that opens a span for each run."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias


class Span(Protocol):
    """A span that is under way."""

    @property
    def traceparent(self) -> str:
        """The span as W3C Trace Context writes it: ``00-<trace>-<span>-<flags>``."""
        ...


Trace: TypeAlias = Callable[[str, str, str], AbstractContextManager[Span]]
"""A function that opens the span of a run. The function gets the package, the task, and the operation that the task belongs
to.
"""
