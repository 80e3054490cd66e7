"""Records that are frozen for the type checker and cheap to make: the queue's machine makes dozens of them for every task.

A frozen dataclass sets each field through ``object.__setattr__``, which costs five times as much as an assignment and took a
third of the time of a machine's step. So mypy treats `record` as ``@dataclass(frozen=True)`` and refuses every assignment to a
field, but when the program runs, `record` makes a plain dataclass with slots. A test with random orders of events checks that no
step changes its input (tests/queue/test_machine_rules.py).
"""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """Turn a class into a dataclass with slots, compared and hashed by value. Do not assign to fields of its instances."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
