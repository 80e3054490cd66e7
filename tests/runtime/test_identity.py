"""Names of packages and of their releases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.runtime.identity import AppId, IdentityError, app_id

LABEL = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)


@given(LABEL, st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?", fullmatch=True))
def test_the_first_dot_divides(namespace: str, instance: str) -> None:
    identity = AppId(namespace, instance)
    assert app_id(identity.name) == identity


@pytest.mark.parametrize("name", ["", "web", ".web", "prod."])
def test_what_is_no_runtime_name_is_refused(name: str) -> None:
    with pytest.raises(IdentityError, match=r"<namespace>.<instance>"):
        app_id(name)


def test_a_release_has_at_most_53_characters() -> None:
    assert AppId("prod", "a" * 53).release == "a" * 53
    with pytest.raises(IdentityError, match=r"54 characters.*shorter"):
        _ = AppId("prod", "a" * 54).release
