"""What the state of a package keeps of its way back."""

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


def test_both_are_written_and_read() -> None:
    assert read_ready({"ready": ready_document(READY)}) == READY
    for rollback in (BACK, STUCK):
        assert read_rollback({"rollback": rollback_document(rollback)}) == rollback
    nothing: JsonObject = {"ready": ready_document(None), "rollback": rollback_document(None)}
    for document in ({}, nothing):
        assert (read_ready(document), read_rollback(document)) == (None, None)
    with pytest.raises(FormatError):
        read_ready({"ready": {"revision": "1"}})


def test_they_are_part_of_a_state() -> None:
    state = PackageState().ready_as(READY, 1).rolled_back(BACK, "former@x")
    secret = encoded(ObjectKey(SECRET, "prod", "wharfinger.app.shop"), "prod.shop", state)
    assert decoded(secret) == state
    assert state.rollback_asked == "former@x"
    assert state.rolled_back(STUCK).rollback_asked == "former@x"


def test_a_rollback_ends_with_another_ready_state_of_another_generation() -> None:
    state = PackageState(ready=READY, rollback=BACK)
    # The package is Ready in its former revision.
    assert state.ready_as(replace(READY, asked=""), 2).rollback == BACK
    # It follows a range, and was Ready with another version of it, for the same generation.
    assert state.ready_as(replace(READY, asked="asked-3"), 2).rollback == BACK
    # Its resource was changed.
    assert state.ready_as(replace(READY, asked="asked-3"), 3).rollback is None
    # What failed is Ready after all.
    assert state.ready_as(replace(READY, asked="asked-2"), 2).rollback is None
