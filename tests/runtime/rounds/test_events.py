"""The events and effects of rounds: values that can be compared, each a member of exactly one union."""

import dataclasses
from enum import Enum
from typing import get_args

import pytest

from wharfinger.runtime.rounds import events

CLASSES = [each for each in vars(events).values() if isinstance(each, type) and each.__module__ == events.__name__]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_each_class_is_an_event_or_an_effect(kind: type) -> None:
    of_unions = (kind in get_args(events.Event)) + (kind in get_args(events.Effect))
    assert of_unions == (kind is not events.Purpose)
    assert issubclass(kind, Enum) or (dataclasses.is_dataclass(kind) and "__slots__" in vars(kind))
