"""The default service accounts of namespaces. A package uses the account of its release's namespace if its resource names none.

The label ``wharfinger.dev/service-account: NAME`` of a namespace names an account in this namespace. This account applies to
all releases in the namespace: the releases of its Applications, and of Modules that name the namespace in ``spec.namespace``.
``spec.serviceAccountName`` has priority. Only users who may edit namespaces can set the label. It is a label and not an
annotation, so that a watch can select the namespaces that have it.

The account is part of each package's desired state, so a changed label changes the desired state. Until the labels are known,
the controller starts no package.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.watch.informer import Informer, open_informer
from wharfinger.formats.json.value import find_object, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.resources.application_scope import NAMESPACE

ACCOUNT_LABEL: Final = "wharfinger.dev/service-account"


class DefaultAccounts:
    """The default service account of each namespace that names one in its label. Made by `open_default_accounts`."""

    def __init__(self, informer: Informer) -> None:
        self.informer = informer

    def of(self, namespace: str) -> str:
        """Return the name of the namespace's default account; empty if the namespace has no such label."""
        found = self.informer.get(ObjectKey(NAMESPACE, "", namespace))
        labels = find_object(found, "metadata", "labels") if found is not None else {}
        return find_str(labels, ACCOUNT_LABEL)

    async def follow(self, changed: Callable[[str], None]) -> None:
        """Call ``changed`` with the name of each namespace whose label is added, removed or changed, until cancelled."""
        with self.informer.changes() as changes:
            while True:
                for key in sorted(await changes.wait()):
                    changed(key.name)


@asynccontextmanager
async def open_default_accounts(client: ClusterClient) -> AsyncIterator[DefaultAccounts]:
    """Follow the labels that name default accounts while the body runs. The body does not wait for the first list of
    namespaces.
    """
    async with open_informer(client, NAMESPACE, label_selector=ACCOUNT_LABEL) as informer:
        yield DefaultAccounts(informer)
