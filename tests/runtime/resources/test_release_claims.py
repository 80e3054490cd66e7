"""Owners of releases: the first package that claims a release owns it, and the next package that has claimed it is notified
when the release is free.
"""

import pytest

from wharfinger.runtime.resources.identity import AppId, IdentityError, ModuleId
from wharfinger.runtime.resources.release_claims import ReleaseClaims

APP = AppId("prod", "web")
MODULE = ModuleId("web", "prod")


def test_the_first_claim_owns_a_release_and_the_next_is_notified() -> None:
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


def test_a_claim_in_another_namespace_frees_the_old_release() -> None:
    freed: list[str] = []
    claims = ReleaseClaims(freed.append)
    assert claims.claim(MODULE) is None
    assert claims.claim(APP) == MODULE
    assert claims.claim(ModuleId("web", "edge")) is None
    assert freed == ["prod.web"]
    assert claims.claim(APP) is None


def test_deleted_packages_are_not_notified() -> None:
    freed: list[str] = []
    claims = ReleaseClaims(freed.append)
    claims.claim(APP)
    claims.claim(MODULE)
    claims.give_up("web")
    claims.give_up("prod.web")
    assert freed == []


def test_too_long_a_name_cannot_claim_a_release() -> None:
    with pytest.raises(IdentityError):
        ReleaseClaims(lambda _: None).claim(ModuleId("a" * 60))
