"""The client interface: the contract in ``client_contract.py`` calls every method, and the HTTP client has all methods."""

import inspect

from tests.cluster.support import client_contract
from wharfinger.cluster.api.client import ClusterClient, Propagation
from wharfinger.cluster.api.http_client import HttpClusterClient


def test_every_client_method_is_in_the_contract() -> None:
    source = inspect.getsource(client_contract)
    methods = [name for name, _ in inspect.getmembers(ClusterClient, inspect.isfunction) if not name.startswith("_")]
    assert len(methods) >= 11
    assert [name for name in methods if f"client.{name}" not in source] == []


def test_http_client_implements_the_protocol() -> None:
    client: type[ClusterClient] = HttpClusterClient
    assert client is HttpClusterClient


def test_propagation_values_are_those_of_the_api() -> None:
    assert [str(one) for one in Propagation] == ["Background", "Foreground", "Orphan"]
