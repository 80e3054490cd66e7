"""Validation of the paths and modes of files in volumes."""

import pytest

from wharfinger.control_plane.api.core.pod_specs.files import local_errors, missing, mode_errors


@pytest.mark.parametrize(
    ("path", "count"), [("a/b", 0), ("", 0), ("/a", 1), ("a/../b", 1), ("..a", 1), ("../a", 1), ("/..", 2)]
)
def test_paths_that_leave_a_volume_are_refused(path: str, count: int) -> None:
    assert len(local_errors(path, "p")) == count


def test_invalid_modes_and_missing_members_are_reported() -> None:
    assert mode_errors({"mode": 0o777}, "mode", "p") == mode_errors({}, "mode", "p") == []
    assert len(mode_errors({"mode": 512}, "mode", "p")) == 1
    assert [error.field for error in missing({"a": "x", "b": 1}, "p", "a", "b")] == ["p.b"]
