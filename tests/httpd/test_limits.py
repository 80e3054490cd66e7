"""The validation of a server's limits."""

from dataclasses import fields

import pytest

from wharfinger.httpd.limits import HttpLimits


@pytest.mark.parametrize("name", [limit.name for limit in fields(HttpLimits)])
def test_a_negative_limit_is_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} cannot be -1"):
        HttpLimits(**{name: -1})


def test_a_limit_of_zero_is_allowed_for_bodies_only() -> None:
    assert HttpLimits(body_bytes=0, linger_bytes=0).body_bytes == 0
    with pytest.raises(ValueError, match="connections"):
        HttpLimits(connections=0)
    with pytest.raises(ValueError, match="idle_s"):
        HttpLimits(idle_s=float("nan"))
