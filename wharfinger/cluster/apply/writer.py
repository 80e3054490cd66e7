"""Server-side apply of one object: the rules for fields to take over, for fields to leave to other managers, and for conflicts.

1. Fields that a user's helm wrote become ours first (:mod:`wharfinger.cluster.fields.adoption`), so that the apply removes
   those that are no longer in the chart.
2. Ignored fields that another manager holds are left out, so that they are neither taken over nor given up.
3. A conflict is either about fields that were ours (the chart had them before, and another manager took them: drift), or
   about fields that were never ours. In case of drift, the field is taken back if the policy is to correct drift; otherwise
   the other manager keeps the field. A conflict about a field that was never ours raises a FieldConflictError, which names the
   object, the field and its owner.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ConflictError
from wharfinger.cluster.drift.comparison import without_ignored
from wharfinger.cluster.drift.ignored import BUILT_IN
from wharfinger.cluster.fields.adoption import HELM_MANAGERS, adoption_patch
from wharfinger.cluster.fields.conflicts import (
    FieldConflict,
    FieldConflictError,
    has_field,
    read_conflicts,
    without_fields,
)
from wharfinger.cluster.objects.drift_policy import DriftMode, DriftPolicy, IgnoreRule
from wharfinger.formats.json.value import JsonObject, find_object
from wharfinger.kube.resource import ObjectKey


@dataclass(frozen=True, slots=True)
class Written:
    """The server's answer to a write, and the fields that were not written because other managers have them now."""

    live: JsonObject
    left: tuple[FieldConflict, ...] = ()


@dataclass(frozen=True, slots=True)
class ObjectWriter:
    """A writer under one field manager. ``force`` takes every field from all other managers.

    ``dry_run``: the API server returns the object as an apply would leave it, and stores nothing. With ``dry_run``, fields that
    a user's helm wrote are not made ours first (rule 1 of this module), because that would be a write.
    """

    client: ClusterClient
    manager: str
    force: bool = False
    dry_run: bool = False

    async def write(
        self,
        key: ObjectKey,
        wanted: JsonObject,
        live: JsonObject | None,
        *,
        before: Callable[[], JsonObject | None],
        drift: DriftPolicy,
        correcting: bool = False,
    ) -> Written:
        """Apply the object and return the server's answer.

        ``live``: the present object; ``before`` returns the previously applied object, None if no object was applied.
        ``correcting``: True if this apply corrects drift; then fields that the package's hooks wrote under our name are kept.

        Raises FieldConflictError, and the client's errors.
        """
        if live is not None:
            patch = adoption_patch(live, self.manager) if not self.dry_run else ()
            if patch:
                live = await self.client.json_patch(key, patch)
            wanted = without_ignored(wanted, live, self.manager, rules_of(drift), own_updates=correcting)
        apply = partial(self.client.apply, field_manager=self.manager, dry_run=self.dry_run)
        try:
            return Written(await apply(wanted, force=self.force))
        except ConflictError as error:
            conflicts = read_conflicts(error.message)
            if not conflicts:
                raise
        self._check(key, conflicts, before())
        taken = [one for one in conflicts if one.manager not in HELM_MANAGERS]
        if drift.mode is DriftMode.CORRECT:
            return Written(await apply(wanted, force=True))
        less = without_fields(wanted, [one.field for one in taken])
        return Written(await apply(less, force=len(taken) < len(conflicts)), tuple(taken))

    async def write_unread(self, wanted: JsonObject, uid: str) -> Written:
        """Apply an object without reading it first, assuming that no other manager owns a field of it. Fields are never taken
        over.

        Raises ConflictError or InvalidError if another manager owns a field by now, or if the object no longer has this UID. In
        these cases, the caller should read the object and call `write`.
        """
        precise = {**wanted, "metadata": {**find_object(wanted, "metadata"), "uid": uid}}
        return Written(await self.client.apply(precise, field_manager=self.manager))

    @staticmethod
    def _check(key: ObjectKey, conflicts: Iterable[FieldConflict], before: JsonObject | None) -> None:
        foreign = tuple(
            one
            for one in conflicts
            if one.manager not in HELM_MANAGERS and (before is None or not has_field(before, one.field))
        )
        if foreign:
            raise FieldConflictError(key, foreign)


def rules_of(drift: DriftPolicy) -> tuple[IgnoreRule, ...]:
    """Return the rules for fields that are left to other managers: the policy's own rules, and the built-in ones."""
    return (*drift.ignore, *BUILT_IN)
