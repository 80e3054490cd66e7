"""The text of a problem."""

from wharfinger.formats.schemas.problem import Problem


def test_the_text_of_a_problem_begins_with_its_path() -> None:
    assert str(Problem("sets[2].name", "is required")) == "sets[2].name: is required"
    assert str(Problem("", "is too long")) == "is too long"
