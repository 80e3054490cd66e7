"""The choice of a chart version by a constraint."""

import pytest

from wharfinger.formats.version_constraint import ConstraintError
from wharfinger.offline.sources.chart_version import newest

VERSIONS = ("1.0.0", "1.10.0", "1.9.0", "2.0.0-rc.1", "latest", "0.9.0")


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        ("", "1.10.0"),
        ("*", "1.10.0"),
        ("~1.9", "1.9.0"),
        ("1.x", "1.10.0"),
        ("1.0.0", "1.0.0"),
        ("2.0.0-rc.1", "2.0.0-rc.1"),
        (">=2.0.0-0", "2.0.0-rc.1"),
        (">=3", None),
    ],
)
def test_the_newest_allowed_version_is_chosen(wanted: str, chosen: str | None) -> None:
    assert newest(VERSIONS, wanted) == chosen


def test_invalid_constraints_are_refused() -> None:
    with pytest.raises(ConstraintError):
        newest(VERSIONS, "not a version at all")
