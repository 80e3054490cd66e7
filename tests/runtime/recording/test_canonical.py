"""States, events and effects of state machines as JSON: equal values have equal bytes, and decoding gives an equal value."""

import contextlib
import hashlib
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rpds import HashTrieMap, HashTrieSet

from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.version_constraint import VersionConstraint, combine_constraints, parse_constraint
from wharfinger.queue.events import Enqueued, Failed
from wharfinger.queue.fifo import Fifo
from wharfinger.queue.state import QueueState
from wharfinger.runtime.recording.canonical import CanonicalError, as_bytes
from wharfinger.runtime.recording.machines import MACHINES, PACKAGE, QUEUE, SCHEDULER
from wharfinger.runtime.recording.record import FORMAT
from wharfinger.runtime.scheduler.state import Graph
from wharfinger.runtime.status.package_status import Stage, Truth

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.text(max_size=6)
    | st.sampled_from(["Enqueued", "=Level", "map", "@"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
)


@pytest.mark.parametrize(
    "value",
    [
        Enqueued(1, "Load", 2, 0.1, unique=True),
        Failed(3, "timed out", permanent=False, at=1e9 + 0.123456, draw=0.1),
        QueueState(),
        Fifo.of([Enqueued(1, "a", 1, 0.0)]),
        (1, ("x", None), 2.5),
        frozenset({"b", "a"}),
        {"k": 1, "a": 2},
        datetime(2026, 1, 1, 1, 2, 3, 4, UTC),
    ],
)
def test_any_value_survives_a_round_trip(value: object) -> None:
    assert QUEUE.codec.decode(QUEUE.codec.encode(value)) == value


def test_maps_and_sets_without_an_order_are_sorted() -> None:
    names = [f"n{number}" for number in range(50)]
    one = (HashTrieMap(dict.fromkeys(names, 1)), HashTrieSet(names))
    other = (HashTrieMap(dict.fromkeys(reversed(names), 1)), HashTrieSet(reversed(names)))
    assert as_bytes(SCHEDULER.codec.encode(one)) == as_bytes(SCHEDULER.codec.encode(other))
    assert SCHEDULER.codec.decode(SCHEDULER.codec.encode(one)) == one
    graph = Graph()
    assert SCHEDULER.codec.decode(SCHEDULER.codec.encode(graph)) == graph


@pytest.mark.parametrize("text", ["", ">=1.2, <2 || ^3.1", "~1"])
def test_version_constraints_survive_a_round_trip(text: str) -> None:
    for constraint in (
        parse_constraint(text),
        combine_constraints(parse_constraint(text), parse_constraint(">=1 || >=5")),
    ):
        found = SCHEDULER.codec.decode(SCHEDULER.codec.encode(constraint))
        assert isinstance(found, VersionConstraint)
        assert found == constraint
        for version in ("1.2.3", "3.1.0", "0.1.0"):
            assert found.allows(version) == constraint.allows(version)


def test_string_enums_are_encoded_as_their_text() -> None:
    assert SCHEDULER.codec.encode(Truth.TRUE) == SCHEDULER.codec.encode("True") == "True"
    assert PACKAGE.codec.decode(PACKAGE.codec.encode(Stage.LOADED)) is Stage.LOADED


def test_texts_are_masked_but_names_are_not() -> None:
    masked = QUEUE.codec.encode(Enqueued(1, "Load", 1, 0.0), lambda _: "***")
    assert masked == ["Enqueued", 1, "Load", 1, 0.0, "main", False, True]
    assert QUEUE.codec.encode(Failed(1, "no", permanent=True, at=0.0, draw=0.0), lambda _: "***") == [
        "Failed", 1, "***", True, 0.0, 0.0,
    ]  # fmt: skip


def test_a_record_with_other_names_is_refused() -> None:
    form: JsonValue = ["#Enqueued", {"run": 1, "work": "Load"}]
    with pytest.raises(CanonicalError, match="expected the fields that this version of Wharfinger writes"):
        QUEUE.codec.decode(form)


def test_the_names_in_recordings_belong_to_their_format() -> None:
    """Check that no name of a class or a field has changed. After a change of a name, recordings of the former format cannot be
    read any more, so increase FORMAT, and write the new digest here.
    """
    names = {name: machine.codec.names() for name, machine in sorted(MACHINES.items())}
    assert (FORMAT, hashlib.sha256(msgspec.json.encode(names, order="sorted")).hexdigest()[:16]) == (
        6,
        "343ae116a0fce6e6",
    )


def test_values_of_other_classes_are_refused() -> None:
    with pytest.raises(CanonicalError, match="object"):
        QUEUE.codec.encode(object())


@given(JSON)
def test_any_json_is_read_or_refused(value: JsonValue) -> None:
    for machine in (QUEUE, PACKAGE, SCHEDULER):
        with contextlib.suppress(CanonicalError):
            machine.codec.decode(value)
