"""The data of Secrets: how it is decoded, and that invalid data is refused."""

import pytest

from wharfinger.formats.errors import FormatError
from wharfinger.runtime.resources.secret_data import secret_data


def test_the_data_of_a_secret_is_decoded() -> None:
    assert secret_data({"data": {"a": "Yg=="}}) == {"a": b"b"}
    assert secret_data({}) == {}
    for wrong in (1, "no base64"):
        with pytest.raises(FormatError, match=r"data\.a"):
            secret_data({"data": {"a": wrong}})
