"""The records of a rollback and of the last ready revision in the state of a package: how they are stored, and when they end."""

from dataclasses import replace
from typing import Final

import pytest

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.lifecycle.package_state import PackageState, decoded, encoded
from wharfinger.runtime.lifecycle.way_back_record import (
    ReadyRevision,
    Rollback,
    read_ready,
    read_rollback,
    ready_document,
    rollback_document,
)
from wharfinger.runtime.resources.recorded_inputs import RecordedInputs
from wharfinger.runtime.resources.resources import SECRET
from wharfinger.runtime.versions.rollback_note import FAILED, NO_WAY_BACK, RollbackNote

INPUTS: Final = RecordedInputs("web", "1.0.0", "sha256:a", {"text": "first"})
READY: Final = ReadyRevision("asked-1", 1, INPUTS)
BACK: Final = Rollback("asked-2", 2, INPUTS, RollbackNote(1, "1.0.0", "2.0.0", FAILED, "why"))
STUCK: Final = Rollback("asked-2", 2, None, RollbackNote(0, "", "2.0.0", NO_WAY_BACK, "why"))


def test_rollback_and_ready_records_survive_a_round_trip() -> None:
    assert read_ready({"ready": ready_document(READY)}) == READY
    for rollback in (BACK, STUCK):
        assert read_rollback({"rollback": rollback_document(rollback)}) == rollback
    nothing: JsonObject = {"ready": ready_document(None), "rollback": rollback_document(None)}
    for document in ({}, nothing):
        assert (read_ready(document), read_rollback(document)) == (None, None)
    with pytest.raises(FormatError):
        read_ready({"ready": {"revision": "1"}})


def test_rollback_and_ready_records_are_part_of_a_state() -> None:
    state = PackageState().ready_as(READY, 1).rolled_back(BACK, "former@x")
    secret = encoded(ObjectKey(SECRET, "prod", "wharfinger.app.shop"), "prod.shop", state)
    assert decoded(secret) == state
    assert state.rollback_asked == "former@x"
    assert state.rolled_back(STUCK).rollback_asked == "former@x"


def test_a_rollback_ends_when_another_generation_is_ready() -> None:
    state = PackageState(ready=READY, rollback=BACK)
    # The package is Ready with its previous revision.
    assert state.ready_as(replace(READY, asked=""), 2).rollback == BACK
    # The package follows a range. For the same generation, it was Ready with another version of the range.
    assert state.ready_as(replace(READY, asked="asked-3"), 2).rollback == BACK
    # A user has changed the resource of the package.
    assert state.ready_as(replace(READY, asked="asked-3"), 3).rollback is None
    # The version whose attempt had failed is Ready in the end.
    assert state.ready_as(replace(READY, asked="asked-2"), 2).rollback is None
