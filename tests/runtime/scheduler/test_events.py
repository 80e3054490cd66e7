"""The events and effects of the scheduler: plain data that is compared by value."""

import dataclasses
from typing import get_args

import pytest

from wharfinger.runtime.scheduler import events


@pytest.mark.parametrize("kind", [*get_args(events.Event), *get_args(events.Effect)])
def test_every_event_and_effect_is_frozen_and_documented(kind: type) -> None:
    assert dataclasses.is_dataclass(kind)
    assert kind.__doc__
    names = [field.name for field in dataclasses.fields(kind)]
    one, same = (kind(*(f"{name}" for name in names)) for _ in range(2))
    assert one == same
    assert hash(one) == hash(same)
    for name in names:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(one, name, "other")


def test_an_order_names_its_package() -> None:
    """Each effect has the name of its package, because `runtime.scheduler.pending_decisions` stores the effects by package."""
    for kind in get_args(events.Effect):
        assert "name" in {field.name for field in dataclasses.fields(kind)}
