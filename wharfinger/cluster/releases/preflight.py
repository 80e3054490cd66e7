"""The checks of a release before its first write.

There are four checks:

* each kind is known, or a definition among the objects creates it;
* no object occurs twice;
* each existing object belongs to this release;
* no definition breaks objects that are stored under the present definition.

Each object is read by one GET, a few at a time; the answers are passed on to the apply, so no object is read twice. Some objects
are not read at all:

* objects whose desired content is the same as before, if no watch has reported a change of them since they were applied;
* objects whose desired content is new, if no watch has reported such a change and no other manager has fields of them;
* objects that do not exist, if a watch shows that.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import trio

from wharfinger.cluster.api.bounded_map import each
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ReleaseError, UnknownKindError
from wharfinger.cluster.crds.preflight import ALLOW_UNSAFE, allows_unsafe, crd_problems
from wharfinger.cluster.objects.accounts import Acting, always
from wharfinger.cluster.objects.desired import DesiredObject, DesiredTable, Identity, check_free, desired_object
from wharfinger.cluster.objects.drift_policy import DriftPolicy
from wharfinger.cluster.objects.install_order import in_install_order
from wharfinger.cluster.objects.lookup import CONCURRENCY, CRD, key_of, look_up
from wharfinger.cluster.objects.ownership import Owner, check_owner
from wharfinger.formats.json.value import JsonObject, ShapeError, find_str
from wharfinger.formats.listing import listed
from wharfinger.kube.resource import ObjectKey, kind_of, name_of, split_api_version

NAMED: Final = 5
"""The largest number of problems that are reported for one CRD."""


class UnsafeDefinitionError(ReleaseError):
    """A changed CustomResourceDefinition would make stored objects invalid."""


@dataclass(frozen=True, slots=True)
class Survey:
    """The results of the checks: the rows in install order, and the live objects of these rows.

    ``coming``: objects whose kind is not served yet, because a definition in the same release adds it. ``lives``: the live
    objects, None for an object that does not exist. ``unread``: objects that were not read, because they are known to be as
    wanted. ``known``: objects that were not read, because they are known to be as they were applied, and without fields of
    other managers. ``definitions``: the live definitions of ``crds/``, by name.
    """

    rows: tuple[DesiredObject, ...] = ()
    coming: tuple[JsonObject, ...] = ()
    lives: Mapping[Identity, JsonObject | None] = field(default_factory=dict)
    unread: frozenset[Identity] = frozenset()
    known: frozenset[Identity] = frozenset()
    definitions: Mapping[str, JsonObject] = field(default_factory=dict)


class Surveyor:
    """The checks of releases in one cluster; :meth:`survey` performs them for one release."""

    def __init__(
        self,
        client: ClusterClient,
        table: DesiredTable,
        manager: str,
        is_as_applied: Callable[[Identity], bool],
        is_shared: Callable[[Identity], bool],
        is_absent: Callable[[ObjectKey], bool],
        acting: Acting | None = None,
    ) -> None:
        """Make a surveyor; ``manager`` is the field manager under whose name objects are applied.

        ``is_as_applied`` returns whether the live object of a row is known to be as it was when it was applied. ``is_shared``
        returns whether another manager may have fields of an object. ``is_absent`` returns whether it is known that an object
        does not exist. ``acting`` returns the client that reads the objects of a release; without it, ``client`` reads them.
        """
        self._client = client
        self._acting = acting or always(client)
        self._table = table
        self._manager = manager
        self._is_as_applied = is_as_applied
        self._is_shared = is_shared
        self._is_absent = is_absent

    async def survey(
        self, owner: Owner, objects: Sequence[JsonObject], crds: Sequence[JsonObject], drift: DriftPolicy
    ) -> Survey:
        """Check a release; return its rows and their live objects.

        Raises ForeignObjectError, UnknownKindError, UnsafeDefinitionError, ReleaseError, and the errors of the client.
        """
        rows, coming = await self._rows(owner, objects, _defined([*crds, *objects]), drift)
        identities: set[Identity] = set()
        for row in rows:
            if row.identity in identities:
                raise ReleaseError(f"release {owner}: its manifest has {row.key} twice; rename one in the chart")
            identities.add(row.identity)
            check_free(self._table.snapshot(), row.identity, owner)
        unread = frozenset(row.identity for row in rows if self.is_unchanged(row))
        known = frozenset(row.identity for row in rows if row.identity not in unread and self._is_known(row))
        read = [row for row in rows if row.identity not in unread | known]
        looks = [partial(self._look, row) for row in read] + [
            partial(self._look_at_definition, owner, crd) for crd in crds
        ]
        lives = await each(looks, lambda look: look(), limit=CONCURRENCY)
        return Survey(
            tuple(rows),
            tuple(coming),
            {row.identity: live for row, live in zip(read, lives, strict=False)},
            unread,
            known,
            {name_of(crd): live for crd, live in zip(crds, lives[len(read) :], strict=True) if live is not None},
        )

    def is_unchanged(self, row: DesiredObject) -> bool:
        """Return whether the object of a row need not be read, because it was applied for this row, and has not changed since."""
        entry = self._table.snapshot().get(row.identity)
        return entry is not None and entry.row.body == row.body and self.is_as_last_applied(row)

    def _is_known(self, row: DesiredObject) -> bool:
        """Return whether the object of a row may be applied without reading it first: it has not changed since its last apply,
        and no other manager owns fields of it.
        """
        return self.is_as_last_applied(row) and not self._is_shared(row.identity)

    def is_as_last_applied(self, row: DesiredObject) -> bool:
        """Return whether the object of a row is as it was last applied for this release; always False for CRDs. The content of
        the row itself is not compared: it may differ from what was applied.
        """
        entry = self._table.snapshot().get(row.identity)
        is_same = entry is not None and (entry.row.key, entry.row.owner) == (row.key, row.owner)
        return is_same and row.key.resource.group_kind != CRD and self._is_as_applied(row.identity)

    async def _rows(
        self, owner: Owner, objects: Iterable[JsonObject], defined: frozenset[tuple[str, str]], drift: DriftPolicy
    ) -> tuple[list[DesiredObject], list[JsonObject]]:
        rows: list[DesiredObject] = []
        coming: list[JsonObject] = []
        for obj in in_install_order(objects):
            try:
                key = await key_of(self._client, owner, obj)
            except UnknownKindError:
                api_version, kind = kind_of(obj)
                if (split_api_version(api_version)[0], kind) not in defined:
                    raise
                coming.append(obj)
            else:
                rows.append(desired_object(key, owner, obj, drift))
        return rows, coming

    async def _look(self, row: DesiredObject) -> JsonObject | None:
        if self._table.snapshot().get(row.identity) is None and self._is_absent(row.key):
            await trio.lowlevel.checkpoint()
            return None
        live = await look_up(self._acting(row.owner), row.key)
        if live is not None:
            check_owner(row.key, live, row.owner)
            if row.key.resource.group_kind == CRD:
                check_definition(live, row.object(), self._manager)
        return live

    async def _look_at_definition(self, owner: Owner, crd: JsonObject) -> JsonObject | None:
        live = await look_up(self._acting(owner), await key_of(self._client, Owner("", ""), crd))
        if live is not None:
            check_definition(live, crd, self._manager)
        return live


def check_definition(live: JsonObject, wanted: JsonObject, manager: str) -> None:
    """Check that stored objects stay valid when a CustomResourceDefinition changes from ``live`` to ``wanted``.

    Raises UnsafeDefinitionError if they may become invalid. With the annotation ALLOW_UNSAFE in ``wanted``, nothing is checked.
    """
    if allows_unsafe(wanted):
        return
    try:
        problems = [str(problem) for problem in crd_problems(live, wanted, manager=manager)]
    except ShapeError as error:
        raise ReleaseError(f"CustomResourceDefinition {name_of(wanted)} cannot be read: {error}") from error
    if problems:
        raise UnsafeDefinitionError(
            f"CustomResourceDefinition {name_of(wanted)} is not upgraded: {listed(problems, NAMED, '; ')}; "
            f'convert the stored objects first, or annotate the new definition {ALLOW_UNSAFE}: "true"'
        )


def _defined(objects: Iterable[JsonObject]) -> frozenset[tuple[str, str]]:
    """Return the groups and kinds that the definitions among these objects define."""
    return frozenset(
        (find_str(obj, "spec", "group"), find_str(obj, "spec", "names", "kind"))
        for obj in objects
        if kind_of(obj)[1] == "CustomResourceDefinition"
    )
