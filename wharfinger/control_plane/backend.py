"""The backend of the API's verbs (create, get, …): the storage, the served kinds, the time, and the source of random names
and UIDs.

All writes go through the backend, which reports every change in order: to observers (such as the controller of
CustomResourceDefinitions) during the write, and to observers of commits (such as watches) when the change is committed.
"""

import random
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from wharfinger.control_plane.access.users import ByToken, no_account
from wharfinger.control_plane.catalog.catalog import Catalog, Served
from wharfinger.control_plane.storage.interface import Change, Collection, CommitError, Key, Storage
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.names import GENERATED

if TYPE_CHECKING:
    from wharfinger.control_plane.api.common.admission import Policies

_DRAWS: Final[ContextVar[random.Random | None]] = ContextVar("_DRAWS", default=None)
"""The source of random values for the current request; None means the server's own source."""
SUFFIX_LENGTH: Final = 5
NAME_LIMIT: Final = 63


class Randomness(Protocol):
    """The source of random names and UIDs; a seeded ``random.Random`` makes a simulation repeatable."""

    def getrandbits(self, k: int, /) -> int: ...

    def choice(self, seq: str, /) -> str: ...


class Backend:
    """The state of a control plane and the only way to write to it. Everything here is synchronous."""

    dry_run = False
    """Always False in this class. In the :meth:`view` of a dry run it is True, and no addresses or ports are allocated for
    Services.
    """

    def __init__(
        self,
        storage: Storage,
        catalog: Catalog,
        now: Callable[[], datetime],
        randomness: Randomness | None = None,
    ) -> None:
        self.storage = storage
        self.catalog = catalog
        self.now = now
        self.by_token: ByToken = no_account
        """The lookup of a token's user, for TokenReviews; set when the control plane is assembled."""
        self.policies: Policies | None = None
        """The admission policies that have a binding, and the admission webhooks; None if there are none.

        An observer of changes of policies, bindings and webhooks sets this attribute.
        """
        self._random = randomness or random.SystemRandom()
        self._observers: list[Callable[[Change], None]] = []
        self._commit_observers: list[Callable[[Change], None]] = []
        self._uncommitted: list[Change] = []
        self.runs_commands = False
        """True if the commands of ``exec`` in simulated Pods are run, as processes on the machine of the server."""
        self.failed_commits = 0
        """The number of commits that failed."""

    def observe(self, observer: Callable[[Change], None]) -> None:
        """Call ``observer`` for each change, in order. Each call is made before the verb that made the change returns.

        If a change cannot be committed, ``observer`` is also called for the changes that undo it.
        """
        self._observers.append(observer)

    def observe_commits(self, observer: Callable[[Change], None]) -> None:
        """Report every change to ``observer``, in order, when it is committed."""
        self._commit_observers.append(observer)

    @property
    def settled(self) -> bool:
        """Return whether all writes are committed, so that clients may learn of them."""
        return self.storage.committed == self.storage.revision

    def commit(self) -> None:
        """Commit all writes, and report them to the observers of commits.

        Raises CommitError if the commit fails; in this case, all writes since the last commit are undone.
        """
        changes, self._uncommitted = self._uncommitted, []
        try:
            self.storage.commit()
        except CommitError as error:
            self.failed_commits += 1
            for change in error.undone:
                self._notify_observers(change)
            raise
        for change in changes:
            for observer in self._commit_observers:
                observer(change)

    def new_uid(self) -> str:
        """Return a random UUID."""
        return str(uuid.UUID(int=self._draws.getrandbits(128), version=4))

    @property
    def _draws(self) -> Randomness:
        return _DRAWS.get() or self._random

    @contextmanager
    def drawing_from(self, seed: int) -> Iterator[None]:
        """Draw the same random values in every block with this seed, so that all attempts of one write make the same object."""
        token = _DRAWS.set(random.Random(seed))  # noqa: S311 - the seed is drawn from a secure source
        try:
            yield
        finally:
            _DRAWS.reset(token)

    def generate_name(self, prefix: str) -> str:
        """Return the prefix with a random suffix; the prefix is cut so that the name has at most 63 characters."""
        suffix = "".join(self._draws.choice(GENERATED) for _ in range(SUFFIX_LENGTH))
        return prefix[: NAME_LIMIT - SUFFIX_LENGTH] + suffix

    def draw(self, count: int) -> int:
        """Return a random number from ``range(count)``."""
        return self._draws.getrandbits(64) % count

    def view(self, *, dry_run: bool) -> "View":
        """Return the view that the strategies and the admission plugins of one request use."""
        return View(self, dry_run)

    def key(self, served: Served, namespace: str, name: str) -> Key:
        """Return the key of an object of a kind."""
        return Key(served.kind.collection, namespace if served.kind.namespaced else "", name)

    def get(self, served: Served, namespace: str, name: str) -> JsonObject | None:
        """Return the stored object, or None; it must not be altered."""
        return self.storage.get(self.key(served, namespace, name))

    def objects(self, group: str, plural: str, namespace: str = "") -> Sequence[JsonObject]:
        """Return the stored objects of a kind, for strategies and admission (a ``ClusterView``)."""
        return self.storage.list(Collection(group, plural), namespace)

    def object(self, group: str, plural: str, namespace: str, name: str) -> JsonObject | None:
        """Return one stored object, or None."""
        return self.storage.get(Key(Collection(group, plural), namespace, name))

    def put(self, key: Key, obj: JsonObject) -> JsonObject:
        """Store an object, and return it as stored."""
        return self._reported(self.storage.put(key, obj))

    def delete(self, key: Key) -> JsonObject:
        """Remove an object, and return its last state."""
        return self._reported(self.storage.delete(key))

    def _reported(self, change: Change) -> JsonObject:
        """Notify observers of a change, and return the written object. If the storage commits every write at once, also report
        the commit.
        """
        self._uncommitted.append(change)
        self._notify_observers(change)
        if self.settled:
            self.commit()
        return change.obj

    def _notify_observers(self, change: Change) -> None:
        for observer in self._observers:
            observer(change)


class View(msgspec.Struct, frozen=True):
    """One request's view of a backend (a ``ClusterView``)."""

    _backend: Backend
    dry_run: bool

    def objects(self, group: str, plural: str, namespace: str = "") -> Sequence[JsonObject]:
        """Return the stored objects of a kind; "" for all namespaces."""
        return self._backend.objects(group, plural, namespace)

    def object(self, group: str, plural: str, namespace: str, name: str) -> JsonObject | None:
        """Return one stored object, or None."""
        return self._backend.object(group, plural, namespace, name)

    def now(self) -> datetime:
        """Return the time of the control plane's clock."""
        return self._backend.now()

    def draw(self, count: int) -> int:
        """Return a random number from ``range(count)``."""
        return self._backend.draw(count)

    def new_uid(self) -> str:
        """Return a random UUID."""
        return self._backend.new_uid()
