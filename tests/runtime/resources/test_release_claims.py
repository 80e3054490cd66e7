"""Whose a release is."""

import pytest

from wharfinger.runtime.resources.identity import AppId, IdentityError, ModuleId
from wharfinger.runtime.resources.release_claims import ReleaseClaims

APP = AppId("prod", "web")
MODULE = ModuleId("web", "prod")


def test_the_first_has_it_and_the_other_is_told_when_it_is_free() -> None:
    freed: list[str] = []
    claims = ReleaseClaims(freed.append)
    assert claims.claim(APP) is None
    assert claims.claim(APP) is None
    assert claims.claim(MODULE) == APP
    assert freed == []
    assert claims.owner_of("prod", "web") == APP
    assert claims.owner_of("test", "web") is None
    claims.give_up("prod.web")
    assert freed == ["web"]
    assert claims.claim(MODULE) is None
    assert claims.claim(APP) == MODULE


def test_another_namespace_is_another_release_and_the_old_one_is_free() -> None:
    freed: list[str] = []
    claims = ReleaseClaims(freed.append)
    assert claims.claim(MODULE) is None
    assert claims.claim(APP) == MODULE
    assert claims.claim(ModuleId("web", "edge")) is None
    assert freed == ["prod.web"]
    assert claims.claim(APP) is None


def test_who_is_no_more_is_not_told() -> None:
    freed: list[str] = []
    claims = ReleaseClaims(freed.append)
    claims.claim(APP)
    claims.claim(MODULE)
    claims.give_up("web")
    claims.give_up("prod.web")
    assert freed == []


def test_a_name_that_can_have_no_release_claims_none() -> None:
    with pytest.raises(IdentityError):
        ReleaseClaims(lambda _: None).claim(ModuleId("a" * 60))
