"""The user names of service accounts."""

import pytest

from wharfinger.kube.service_account import ServiceAccount, service_account_of


def test_the_user_of_an_account_is_read_as_the_account() -> None:
    account = ServiceAccount("shop", "deployer")
    assert account.user == "system:serviceaccount:shop:deployer"
    assert str(account) == "shop/deployer"
    assert service_account_of(account.user) == account


@pytest.mark.parametrize(
    "user", ["", "ann", "system:serviceaccount:shop", "system:serviceaccount::x", "system:serviceaccount:a:b:c"]
)
def test_other_users_are_not_accounts(user: str) -> None:
    assert service_account_of(user) is None
