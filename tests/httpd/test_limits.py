"""A server without bounds cannot be asked for."""

from dataclasses import fields

import pytest

from wharfinger.httpd.limits import HttpLimits


@pytest.mark.parametrize("name", [limit.name for limit in fields(HttpLimits)])
def test_every_limit_is_positive(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} cannot be -1"):
        HttpLimits(**{name: -1})


def test_a_server_may_take_no_bodies_but_not_no_connections() -> None:
    assert HttpLimits(body_bytes=0, linger_bytes=0).body_bytes == 0
    with pytest.raises(ValueError, match="connections"):
        HttpLimits(connections=0)
    with pytest.raises(ValueError, match="idle_s"):
        HttpLimits(idle_s=float("nan"))
