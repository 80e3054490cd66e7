"""Field paths."""

from wharfinger.cluster.control_plane.custom.paths import indexed, joined, keyed


def test_paths() -> None:
    assert indexed(keyed(joined(joined("", "a"), "b"), "k"), 1) == "a.b[k][1]"
