"""The paths of fields, as errors show them."""

from wharfinger.control_plane.kinds.field_paths import indexed, joined, keyed


def test_field_paths_are_joined() -> None:
    assert indexed(keyed(joined(joined("", "a"), "b"), "k"), 1) == "a.b[k][1]"
