"""Collection of all problems of a document, up to a limit."""

import pytest

from wharfinger.formats.errors import FormatError
from wharfinger.hooks.config.problems import HookConfigError, Problems


def refuse() -> str:
    raise FormatError("no good")


def test_warnings_alone_raise_no_error() -> None:
    problems = Problems("hooks/a")
    problems.check(lambda: 1)
    assert problems.value_of(lambda: 2, "x", 3) == 2
    problems.warn("odd")
    problems.raise_any()
    assert problems.warnings() == ("odd",)


def test_all_problems_are_raised_together_in_order() -> None:
    problems = Problems("hooks/a")
    problems.add("first")
    problems.check(refuse)
    assert problems.value_of(refuse, "x.y", "instead") == "instead"
    with pytest.raises(HookConfigError) as caught:
        problems.raise_any()
    assert caught.value.problems == ("first", "no good", "x.y is invalid: no good")
    assert str(caught.value) == ("hook hooks/a: its configuration is refused: first; no good; x.y is invalid: no good")
    assert not caught.value.transient


def test_number_and_length_of_problems_are_limited() -> None:
    problems = Problems("hooks/a")
    for number in range(25):
        problems.add(f"{number} " + "x" * 1000)
        problems.warn(f"{number} " + "y" * 1000)
    found = problems.error().problems
    assert (len(found), found[-1], len(problems.warnings())) == (21, "and 5 more", 20)
    assert {len(found[0]), len(problems.warnings()[0])} == {301}
