"""A control plane in this process. Its handler and its controllers exist for as long as an ``async with`` block runs."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Final

from wharfinger.control_plane.access.users import Authenticator
from wharfinger.control_plane.admission.bindings import BoundPolicies
from wharfinger.control_plane.backend import Backend, Randomness
from wharfinger.control_plane.bootstrap import first_objects
from wharfinger.control_plane.bootstrap.roles import install
from wharfinger.control_plane.catalog.catalog import Catalog, Served
from wharfinger.control_plane.controllers.manager import open_controllers
from wharfinger.control_plane.controllers.server.api_services import GroupServices
from wharfinger.control_plane.controllers.server.cluster_roles import Aggregation
from wharfinger.control_plane.controllers.server.definitions import DEFINITIONS, DefinitionController
from wharfinger.control_plane.faults.handler import FaultyHandler
from wharfinger.control_plane.faults.past_storage import PastStorage
from wharfinger.control_plane.faults.rule import Rule
from wharfinger.control_plane.http.handler import ControlPlaneHandler
from wharfinger.control_plane.http.memory_transport import MemoryTransport
from wharfinger.control_plane.http.pod_commands import open_pod_commands
from wharfinger.control_plane.special_endpoints.service_account_tokens import TokenSigner
from wharfinger.control_plane.storage.interface import Change, Key, Storage
from wharfinger.control_plane.storage.memory import MemoryStorage
from wharfinger.control_plane.verbs.creation import NAMESPACES, create
from wharfinger.control_plane.verbs.options import WriteOptions
from wharfinger.control_plane.verbs.watching import ChangeSignals
from wharfinger.formats.json.value import JsonObject
from wharfinger.httpd.messages import Handler

FIRST_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
LOCAL: Final = "http://control-plane.invalid"
"""The address that in-memory clients use; it does not resolve."""


def utc_now() -> datetime:
    """Return the time of the wall clock."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """An open control plane. ``handler`` answers requests; ``backend`` is for tests and faults, not for clients."""

    handler: ControlPlaneHandler
    backend: Backend
    front: Handler
    """The handler that clients use: ``handler``, or the fault injection in front of it."""

    def transport(self) -> MemoryTransport:
        """Return a transport for httpx clients in this process."""
        return MemoryTransport(self.front)


@asynccontextmanager
async def open_control_plane(
    *,
    storage: Storage | None = None,
    now: Callable[[], datetime] = utc_now,
    randomness: Randomness | None = None,
    token: str | None = None,
    simulate: bool = True,
    root_ca: str = "",
    faults: Sequence[Rule] = (),
    fault_seed: int = 0,
    command_folder: Path | None = None,
) -> AsyncGenerator[ControlPlane, None]:
    """Open a control plane that has the namespaces of a new cluster. If ``simulate`` is true, it also runs controllers.

    ``storage`` is in memory unless given. If ``token`` is None, every client is accepted as administrator, as the in-memory
    transport requires. ``now`` and ``randomness`` make a run repeatable. ``root_ca`` (PEM) is the content of the ConfigMap
    ``kube-root-ca.crt`` in each namespace. ``faults`` affect every client except the controllers. With ``simulate``,
    commands in simulated Pods (``exec``) are run in folders below ``command_folder``, if it is given;
    :mod:`wharfinger.control_plane.http.pod_commands` describes how, and as which user.

    Leaving the block stops the controllers, but does not change the storage.
    """
    control_plane = assemble(storage or MemoryStorage(), now, randomness, token)
    if faults:
        control_plane = _with_faults(control_plane, faults, fault_seed)
    if not simulate:
        yield control_plane
        return
    async with AsyncExitStack() as stack:
        if command_folder is not None:
            handler, backend = control_plane.handler, control_plane.backend
            handler.commands = await stack.enter_async_context(open_pod_commands(backend, command_folder))
            backend.runs_commands = True
        await stack.enter_async_context(
            open_controllers(control_plane.backend, root_ca=root_ca or _process_authority())
        )
        yield control_plane


@cache
def _process_authority() -> str:
    """Return the certificate of an authority for the ConfigMaps ``kube-root-ca.crt`` of control planes without TLS.

    No server certificate is signed by this authority.
    """
    # Imported here, because a control plane with TLS or without controllers does not need it.
    from wharfinger.control_plane.access.certificates import new_authority  # noqa: PLC0415

    return new_authority(utc_now()).pem


def assemble(
    storage: Storage, now: Callable[[], datetime], randomness: Randomness | None, token: str | None
) -> ControlPlane:
    """Make the parts of a control plane without starting any of them."""
    catalog, signals = Catalog(), ChangeSignals()
    backend = Backend(storage, catalog, now, randomness)
    definitions = DefinitionController(backend, _served(catalog, "apiextensions.k8s.io", "customresourcedefinitions"))
    definitions.load()
    backend.observe(definitions)

    def wake(change: Change) -> None:
        if change.key.collection == DEFINITIONS:
            signals.notify_all()  # if the change has removed a kind, the watches of that kind have to end
        else:
            signals.notify(change.key.collection)

    backend.observe_commits(wake)
    namespaces = _served(catalog, "", "namespaces")
    for name in FIRST_NAMESPACES:
        if storage.get(Key(NAMESPACES, "", name)) is None:
            body: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            create(backend, namespaces, "", body, WriteOptions("kube-apiserver"))
    first_objects.install(backend)
    install(backend)
    group_services = GroupServices(backend, _served(catalog, "apiregistration.k8s.io", "apiservices"))
    group_services.load()
    backend.commit()
    backend.observe(group_services)
    backend.observe(Aggregation(backend, _served(catalog, "rbac.authorization.k8s.io", "clusterroles")))
    backend.observe(BoundPolicies(backend))
    storage.compact()
    authenticator = Authenticator(token, TokenSigner(backend).user)
    backend.by_token = authenticator.by_token
    handler = ControlPlaneHandler(backend, signals, authenticator)
    return ControlPlane(handler, backend, handler)


def _with_faults(control_plane: ControlPlane, rules: Sequence[Rule], seed: int) -> ControlPlane:
    """Return the control plane with a request handler that injects faults before the control plane's own handler."""
    handler, backend = control_plane.handler, control_plane.backend

    def past(back: int) -> Handler:
        storage = PastStorage(backend.storage, backend.storage.revision - back)
        return handler.reading(Backend(storage, backend.catalog, backend.now))

    return replace(
        control_plane,
        front=FaultyHandler(handler, backend.catalog, rules, seed=seed, past=past, injected=handler.metrics.faults),
    )


def _served(catalog: Catalog, group: str, plural: str) -> Served:
    """Return a built-in kind. Raises LookupError if the table of built-in kinds lacks it."""
    found = catalog.find(group, "v1", plural)
    if found is None:
        raise LookupError(f"{plural} of group {group!r} is not in the table of built-in kinds")
    return found
