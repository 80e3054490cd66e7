"""The service account of a release is the account of the package that has claimed the release."""

from datetime import UTC, datetime

import pytest

from wharfinger.cluster.objects.accounts import NoAccountError
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.kube.service_account import ServiceAccount
from wharfinger.runtime.core.release_accounts import ReleaseAccounts
from wharfinger.runtime.package.findings import AccountGiven
from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.package.state import Package
from wharfinger.runtime.package.transitions import applied
from wharfinger.runtime.resources.identity import AppId
from wharfinger.runtime.resources.release_claims import ReleaseClaims
from wharfinger.runtime.status import transitions as statuses

SHOP = AppId("prod", "shop")
OWNER = Owner("shop", "prod")


@pytest.mark.parametrize("required", [False, True])
def test_a_release_has_the_account_of_its_package(*, required: bool) -> None:
    claims, instance = (
        ReleaseClaims(lambda _name: None),
        Instance(Package(SHOP, statuses.fresh(1, datetime(2026, 1, 1, tzinfo=UTC)))),
    )
    account_of = ReleaseAccounts(claims, {SHOP.name: instance}, required=required)
    claims.claim(SHOP)
    instance.state = applied(instance.state, AccountGiven("deployer"))
    assert account_of(OWNER) == ServiceAccount("prod", "deployer")
    claims.give_up(SHOP.name)
    for _ in range(2):
        if required:
            with pytest.raises(NoAccountError):
                account_of(OWNER)
        else:
            assert account_of(OWNER) is None
        claims.claim(SHOP)  # the package claims the release again, now without an account
        instance.state = applied(instance.state, AccountGiven(""))
