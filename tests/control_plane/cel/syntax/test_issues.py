"""How problems are told."""

from wharfinger.control_plane.cel.syntax.issues import MAX_TOLD, Issue, told


def test_the_place_is_marked() -> None:
    assert told([Issue(3, "x")], "ab\ncd") == "ERROR: <input>:2:1: x\n | cd\n | ^"
    assert told([Issue(-1, "x")], "ab") == "ERROR: <input>:-1:0: x"
    assert told([Issue(1, "x")], "é" * 2).endswith(" | \uff0e\uff3e")


def test_too_many() -> None:
    assert told([Issue(0, "x")] * (MAX_TOLD + 2), "a").endswith("2 more errors were truncated")
