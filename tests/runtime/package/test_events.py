"""The events of a package: each is of exactly one kind."""

import dataclasses
from typing import get_args

import pytest

from wharfinger.runtime.package import events

KINDS = {kind: get_args(getattr(events, kind)) for kind in ("Report", "Outcome", "Request")}
CLASSES = [
    each
    for each in vars(events).values()
    if isinstance(each, type) and each.__module__ == events.__name__ and not each.__name__.endswith("Base")
]


@pytest.mark.parametrize("event", CLASSES, ids=lambda event: event.__name__)
def test_an_event_is_of_one_kind(event: type) -> None:
    (kind,) = (kind for kind, members in KINDS.items() if event in members)
    assert issubclass(event, vars(events)[f"{kind}Base"])  # the machine recognizes the kind by this base class
    assert dataclasses.is_dataclass(event)
    assert "__slots__" in vars(event)


def test_events_of_every_operation_are_reports() -> None:
    assert set(events.OF_EVERY_OPERATION) <= set(KINDS["Report"])
    assert len(events.OF_EVERY_OPERATION) < len(KINDS["Report"])
