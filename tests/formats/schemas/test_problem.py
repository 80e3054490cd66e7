"""The text of a problem."""

from wharfinger.formats.schemas.problem import Problem


def test_the_text_begins_with_the_place() -> None:
    assert str(Problem("sets[2].name", "is required")) == "sets[2].name: is required"
    assert str(Problem("", "is too long")) == "is too long"
