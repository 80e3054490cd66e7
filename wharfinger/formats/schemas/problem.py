"""A problem of a value, in words. This module does not import the validators, so that a client starts quickly."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a value: a place, such as ``sets[2].name`` (``""`` is the whole value), and a sentence about the problem."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message
