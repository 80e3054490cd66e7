"""The cache of bound policies (policies that have a binding) and of the configured webhooks. It is only loaded again when a
policy, a binding or a webhook configuration changes. Without a bound policy or a webhook, no write is checked here.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from wharfinger.control_plane.admission.mutating import mutate
from wharfinger.control_plane.admission.mutating_policies import CompiledMutation, mutate_by_policies
from wharfinger.control_plane.admission.validating import CompiledPolicy, enforce
from wharfinger.control_plane.admission.webhooks import (
    CONFIGURATIONS,
    MUTATING_CONFIGURATIONS,
    POLICY_KINDS,
    Webhooks,
)
from wharfinger.control_plane.api.common.admission import Admission, Mutation
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.storage.interface import Change, Collection, Key
from wharfinger.formats.json.value import JsonObject

GROUP: Final = "admissionregistration.k8s.io"
POLICIES: Final = Collection(GROUP, "validatingadmissionpolicies")
BINDINGS: Final = Collection(GROUP, "validatingadmissionpolicybindings")
MUTATING_POLICIES: Final = Collection(GROUP, "mutatingadmissionpolicies")
MUTATING_BINDINGS: Final = Collection(GROUP, "mutatingadmissionpolicybindings")
_ALL: Final = frozenset(
    {POLICIES, BINDINGS, MUTATING_POLICIES, MUTATING_BINDINGS, CONFIGURATIONS, MUTATING_CONFIGURATIONS}
)
Compiled = TypeVar("Compiled", CompiledPolicy, CompiledMutation)
_EXEMPT: Final = frozenset({
    *(f"{kind}.{GROUP}" for kind in POLICY_KINDS),
    *(f"{kind}.authentication.k8s.io" for kind in ("SelfSubjectReview", "TokenReview")),
    *(
        f"{kind}.authorization.k8s.io"
        for kind in (
            "LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview",
        )
    ),
})  # fmt: skip
"""Kinds that are exempt from policies: policies and their bindings, so that wrong ones can be repaired, and the reviews of
users and permissions, because the cluster needs them."""


class BoundPolicies:
    """The compiled policies that have bindings, and the webhooks. The backend calls this object with every change
    of a stored object.

    ``backend.policies`` is this object while there is a bound policy or a webhook, and None otherwise.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._bound: list[tuple[CompiledPolicy, list[JsonObject]]] = []
        self._mutations: list[tuple[CompiledMutation, list[JsonObject]]] = []
        self._webhooks = Webhooks(backend)
        self._mutating = Webhooks(backend, MUTATING_CONFIGURATIONS)
        self.load()

    def __call__(self, change: Change) -> None:
        if change.key.collection == CONFIGURATIONS:
            self._webhooks.load()
        if change.key.collection == MUTATING_CONFIGURATIONS:
            self._mutating.load()
        if change.key.collection in _ALL:
            self.load()

    def load(self) -> None:
        """Read the stored policies and bindings; compile only policies that changed."""
        self._bound = self._read(POLICIES, BINDINGS, self._bound, CompiledPolicy)
        self._mutations = self._read(MUTATING_POLICIES, MUTATING_BINDINGS, self._mutations, CompiledMutation)
        self._mutations.sort(key=lambda bound: bound[0].name)
        any_at_all = self._bound or self._mutations or self._webhooks or self._mutating
        self._backend.policies = self if any_at_all else None

    def _read(
        self,
        policies: Collection,
        bindings: Collection,
        before: list[tuple[Compiled, list[JsonObject]]],
        compile_policy: Callable[[JsonObject], Compiled],
    ) -> list[tuple[Compiled, list[JsonObject]]]:
        compiled = {_state(policy.policy): policy for policy, _ in before}
        by_policy: dict[str, list[JsonObject]] = {}
        for binding in self._backend.storage.list(bindings):
            by_policy.setdefault(text(binding, "spec", "policyName"), []).append(binding)
        found: list[tuple[Compiled, list[JsonObject]]] = []
        for name, bound in by_policy.items():
            policy = self._backend.storage.get(Key(policies, "", name))
            if policy is not None:
                found.append((compiled.get(_state(policy)) or compile_policy(policy), bound))
        return found

    def mutate_by_policies(self, admission: Admission, mutation: Mutation) -> JsonObject | None:
        """Return the object with the changes of the bound mutating policies; None for a delete. Raises StatusError."""
        if not self._mutations or admission.kind.group_kind in _EXEMPT:
            return admission.obj
        return mutate_by_policies(admission, self._backend.catalog, self._mutations, mutation)

    def mutate(self, admission: Admission, mutation: Mutation) -> JsonObject | None:
        """Return the object with the changes of the mutating webhooks; None for a delete.

        Raises StatusError if a webhook refuses the write, and VerdictsNeededError if webhooks have to be called first.
        """
        return mutate(admission, self._mutating.all, mutation, self._backend) if self._mutating else admission.obj

    def enforce(self, admission: Admission) -> None:
        """Refuse the write if a bound validating policy or a webhook refuses it.

        Raises StatusError for a refused write, and VerdictsNeededError if webhooks have to be called first.
        """
        if admission.kind.group_kind not in _EXEMPT:
            enforce(admission, self._backend.catalog, self._bound)
        if self._webhooks:
            self._webhooks.judge(admission)


def _state(obj: JsonObject) -> tuple[str, str]:
    """Return a key that identifies the current state of an object: its UID and resourceVersion."""
    return text(obj, "metadata", "uid"), text(obj, "metadata", "resourceVersion")
