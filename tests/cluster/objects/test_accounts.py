"""Clients that act as the service account of a release, on a control plane that authorizes requests."""

import pytest

from tests.cluster.support.client_contract import config_map, key
from tests.cluster.support.clusters import memory_cluster
from wharfinger.cluster.api.errors import ForbiddenError
from wharfinger.cluster.objects.accounts import MAX_CLIENTS, NoAccountError, OwnerClients, always, daemon_itself
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.kube.service_account import ServiceAccount

OWNER = Owner("web", "default")


async def test_a_release_with_a_service_account_impersonates_it() -> None:
    async with memory_cluster() as client:
        acting = OwnerClients(client, lambda owner: ServiceAccount(owner.namespace, "deployer"))
        assert acting(OWNER) is acting(Owner("other", "default"))
        with pytest.raises(ForbiddenError) as refused:
            await acting(OWNER).create(config_map("a"))
        said = str(refused.value)
        assert 'User "system:serviceaccount:default:deployer" cannot create resource "configmaps"' in said
        assert said.endswith('- {apiGroups: [""], resources: [configmaps], verbs: [create]}')
        with pytest.raises(ForbiddenError):
            await acting(OWNER).get(key("a"))
        # The daemon sends lists with its own account.
        await client.create(config_map("a"))
        assert (await acting(OWNER).list(key("a").resource, "default")).items


async def test_a_release_without_an_account_acts_as_the_daemon() -> None:
    async with memory_cluster() as client:
        assert OwnerClients(client, daemon_itself)(OWNER) is client
        assert always(client)(OWNER) is client


async def test_a_missing_account_is_an_error_before_any_request() -> None:
    def required(owner: Owner) -> ServiceAccount | None:
        raise NoAccountError(owner)

    async with memory_cluster() as client:
        with pytest.raises(NoAccountError, match=r"set spec\.serviceAccountName, or label the namespace default"):
            OwnerClients(client, required)(OWNER)


async def test_the_number_of_cached_clients_is_limited() -> None:
    async with memory_cluster() as client:
        acting = OwnerClients(client, lambda owner: ServiceAccount(owner.namespace, owner.name))
        first = acting(OWNER)
        for number in range(MAX_CLIENTS):
            acting(Owner(f"r{number}", "default"))
        assert acting(OWNER) is not first
