"""Validation of ControllerRevisions."""

from wharfinger.control_plane.api.apps.revisions import revision_errors, revision_update_errors


def test_invalid_and_changed_revisions_are_refused() -> None:
    assert not revision_errors({"data": {}, "revision": 0})
    assert [error.field for error in revision_errors({"data": 1, "revision": -1})] == ["revision", "data"]
    assert [error.field for error in revision_update_errors({"data": {"a": 1}}, {"data": {}})] == ["data"]
