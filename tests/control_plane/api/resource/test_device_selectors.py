"""Validation of expressions that select devices.

The recorded answers of a real API server (scenario ``hunt3-kinds-devices``) cover other errors.
"""

import pytest

from wharfinger.control_plane.api.resource.device_selectors import COST_LIMIT, selector_checked, selector_cost
from wharfinger.control_plane.cel.checking.checker import Checked


@pytest.mark.parametrize(
    ("expression", "cheap"),
    [
        ('device.driver == "a"', True),
        ('device.attributes["a"].b', True),
        ('device.capacity["a"].b.compareTo(quantity("1")) > 0', True),
        ('cel.bind(d, device.attributes["a"], d.b && d.c == 2)', True),
        ("device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, true)))", True),
        ("[1].all(d, " + "device.attributes.all(a, " * 5 + "true" + ")" * 6, False),
    ],
)
def test_the_cost_of_valid_expressions_is_estimated(expression: str, cheap: bool) -> None:
    checked = selector_checked(expression)

    assert isinstance(checked, Checked)
    assert (selector_cost(checked) <= COST_LIMIT) == cheap


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("1", "must evaluate to bool or the unknown type, not int"),
        (
            "device.attributes",
            "must evaluate to bool or the unknown type, not map(string, map(string, google.protobuf.Any))",
        ),
        (
            "device.odd",
            "compilation failed: ERROR: <input>:1:7: undefined field 'odd'\n | device.odd\n | ......^",
        ),
    ],
)
def test_invalid_expressions_are_refused(expression: str, why: str) -> None:
    assert selector_checked(expression) == why
