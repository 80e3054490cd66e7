"""Values the queue's machine makes by the dozen for every task: frozen for the type checker, cheap when made.

A frozen dataclass makes each field through ``object.__setattr__``, which is five times the price of an assignment and was a
third of a machine step. So `record` is ``@dataclass(frozen=True)`` to mypy, which refuses every assignment to a field, and a
plain one with slots when the program runs. That no step changes what it was given is held by a test under random orders of
events (tests/queue/test_machine_rules.py).
"""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """Make a class a dataclass with slots, compared and hashed by value, whose fields are never assigned after it was made."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
