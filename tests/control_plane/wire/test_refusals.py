"""The errors that are returned for bodies that cannot be read."""

import pytest

from wharfinger.control_plane.wire.bodies import Body
from wharfinger.control_plane.wire.negotiation import Encoding
from wharfinger.control_plane.wire.refusals import kind_complaint, refused, repeats_complaint, unreadable
from wharfinger.formats.json.value import JsonValue


def test_refusals_have_the_messages_of_kubernetes() -> None:
    assert str(refused("Pod", "v1", "why", "Node")) == 'Pod in version "v1" cannot be handled as a Node: why'
    said = unreadable("Pod", "why", Body(None, b"x"))
    assert said.message.endswith("(must be of type Pod): couldn't get version/kind; json parse error: why (78)")
    assert said.why == "couldn't get version/kind; json parse error: why"
    assert unreadable("Pod", "why", Body(None, b"x", Encoding.YAML)).why == "why"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, ""),
        ({"kind": "x", "Kind": None}, ""),
        ({"KIND": 5}, "field .kind of type string"),
        (5, "cannot unmarshal number"),
    ],
)
def test_a_kind_of_a_wrong_type_is_reported(value: JsonValue, words: str) -> None:
    assert words in kind_complaint(value)
    assert bool(words) == bool(kind_complaint(value))


def test_repeated_keys_give_one_error() -> None:
    assert repeats_complaint(Body(None)) == []
    assert repeats_complaint(Body(None, repeats=("line 1: a", "line 2: b"))) == [
        "yaml: unmarshal errors:\n  line 1: a\n  line 2: b"
    ]
