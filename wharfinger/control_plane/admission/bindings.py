"""The cache of bound policies and configured webhooks. It is kept until one of them changes, so that writes cost nothing while
there are none.
"""

from typing import Final

from wharfinger.control_plane.admission.mutating import mutate
from wharfinger.control_plane.admission.validating import CompiledPolicy, enforce
from wharfinger.control_plane.admission.webhooks import CONFIGURATIONS, MUTATING_CONFIGURATIONS, Webhooks
from wharfinger.control_plane.api.common.admission import Admission, Mutation
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.storage.interface import Change, Collection, Key
from wharfinger.formats.json.value import JsonObject

GROUP: Final = "admissionregistration.k8s.io"
POLICIES: Final = Collection(GROUP, "validatingadmissionpolicies")
BINDINGS: Final = Collection(GROUP, "validatingadmissionpolicybindings")
_EXEMPT: Final = frozenset(
    f"{kind}.{GROUP}"
    for kind in (
        "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    )
)  # fmt: skip
"""Kinds that are exempt from policies, so that a wrong policy can be repaired."""


class BoundPolicies:
    """The policies that have bindings, compiled, and the webhooks. Call it with every change.

    While there is at least one of them, ``backend.policies`` is this object; otherwise it is None.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._bound: list[tuple[CompiledPolicy, list[JsonObject]]] = []
        self._webhooks = Webhooks(backend)
        self._mutating = Webhooks(backend, MUTATING_CONFIGURATIONS)
        self.load()

    def __call__(self, change: Change) -> None:
        if change.key.collection == CONFIGURATIONS:
            self._webhooks.load()
        if change.key.collection == MUTATING_CONFIGURATIONS:
            self._mutating.load()
        if change.key.collection in (POLICIES, BINDINGS, CONFIGURATIONS, MUTATING_CONFIGURATIONS):
            self.load()

    def load(self) -> None:
        """Read the stored policies and bindings; compile only policies that changed."""
        compiled = {_state(policy.policy): policy for policy, _ in self._bound}
        by_policy: dict[str, list[JsonObject]] = {}
        for binding in self._backend.storage.list(BINDINGS):
            by_policy.setdefault(text(binding, "spec", "policyName"), []).append(binding)
        self._bound = []
        for name, bindings in by_policy.items():
            policy = self._backend.storage.get(Key(POLICIES, "", name))
            if policy is not None:
                self._bound.append((compiled.get(_state(policy)) or CompiledPolicy(policy), bindings))
        self._backend.policies = self if self._bound or self._webhooks or self._mutating else None

    def mutate(self, admission: Admission, mutation: Mutation) -> JsonObject | None:
        """Let the mutating webhooks change the object; None for a delete. Raises StatusError, and VerdictsNeededError."""
        return mutate(admission, self._mutating.all, mutation, self._backend) if self._mutating else admission.obj

    def enforce(self, admission: Admission) -> None:
        """Evaluate the bound policies, and then the webhooks. Raises StatusError, and VerdictsNeededError."""
        if admission.kind.group_kind not in _EXEMPT:
            enforce(admission, self._backend.catalog, self._bound)
        if self._webhooks:
            self._webhooks.judge(admission)


def _state(obj: JsonObject) -> tuple[str, str]:
    """Return a key that is equal for equal states of an object."""
    return text(obj, "metadata", "uid"), text(obj, "metadata", "resourceVersion")
