"""The configured webhooks, and the verdicts of validating webhooks on a write. (For mutating webhooks, see ``mutating``.)

A write is synchronous, so a webhook cannot be called in the middle of it. Instead, `Webhooks.judge` raises VerdictsNeededError
with the missing calls, before anything is stored. The HTTP handler makes the calls, and repeats the request with the verdicts
(``VERDICTS``). If the object has changed meanwhile, the webhook is called again.
"""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.admission.matching import matched
from wharfinger.control_plane.admission.request import Resource, resource_of
from wharfinger.control_plane.admission.validating import CompiledPolicy
from wharfinger.control_plane.admission.webhook_reviews import Verdict, denial, failure, key_of, review_of
from wharfinger.control_plane.api.common.admission import Admission
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import part, parts
from wharfinger.control_plane.storage.interface import Collection
from wharfinger.control_plane.wire import status
from wharfinger.formats.json.value import JsonObject, JsonValue, find_int

CONFIGURATIONS: Final = Collection("admissionregistration.k8s.io", "validatingwebhookconfigurations")
MUTATING_CONFIGURATIONS: Final = Collection("admissionregistration.k8s.io", "mutatingwebhookconfigurations")
POLICY_KINDS: Final = (
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
)
EXEMPT: Final = frozenset(
    f"{kind}.admissionregistration.k8s.io"
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", *POLICY_KINDS)
)
"""Kinds for which no webhook is called, so that a wrong configuration can be repaired."""
TIMEOUT_S: Final = 10
_NO_SIDE_EFFECTS: Final = frozenset({"None", "NoneOnDryRun"})
_ALWAYS: Final[JsonValue] = [{"expression": "false"}]
_HOLDS: Final = "failed expression: false"


@dataclass(frozen=True, slots=True)
class WebhookCall:
    """One call of a webhook. ``client`` is the ``clientConfig``; ``review`` is the ``request`` of the review, without its uid."""

    key: str
    webhook: str
    client: JsonObject
    timeout_s: int
    review: JsonObject
    mutating: bool = False


class VerdictsNeededError(Exception):
    """The webhook calls in ``calls`` have to be made before the write can be decided."""

    def __init__(self, calls: Sequence[WebhookCall]) -> None:
        super().__init__(f"{len(calls)} webhooks have to be called before the write can be decided")
        self.calls = tuple(calls)


_NOTHING: Final[Mapping[str, Verdict]] = {}
VERDICTS: Final[ContextVar[Mapping[str, Verdict]]] = ContextVar("VERDICTS", default=_NOTHING)
"""The verdicts for the current request, by the keys of their calls."""


class Webhook:
    """One webhook of a configuration."""

    def __init__(self, configuration: JsonObject, webhook: JsonObject, *, mutating: bool = False) -> None:
        self.name = text(webhook, "name")
        self.id = f"{text(configuration, 'metadata', 'name')}/{self.name}"
        self.again = text(webhook, "reinvocationPolicy") == "IfNeeded"
        """True if a mutating webhook is called again after a later change of the object."""
        self._mutating = mutating
        self._id = " ".join(
            (*(text(configuration, "metadata", name) for name in ("uid", "resourceVersion")), self.name)
        )
        self._client = part(webhook, "clientConfig") or {}
        self._timeout_s = find_int(webhook, "timeoutSeconds") or TIMEOUT_S
        self._strict = text(webhook, "failurePolicy") != "Ignore"
        self._dry_run = text(webhook, "sideEffects") in _NO_SIDE_EFFECTS
        self._match: JsonObject = {
            "matchPolicy": text(webhook, "matchPolicy") or "Equivalent",
            "resourceRules": [*parts(webhook, "rules")],
            **{name: webhook.get(name) or {} for name in ("namespaceSelector", "objectSelector")},
        }
        conditions: list[JsonValue] = [*parts(webhook, "matchConditions")]
        spec: JsonObject = {
            "matchConditions": conditions,
            "failurePolicy": text(webhook, "failurePolicy") or "Fail",
            "validations": _ALWAYS,
        }
        self._conditions = CompiledPolicy({"metadata": {"name": self.name}, "spec": spec}) if conditions else None

    def call(self, admission: Admission, asked: Resource, backend: Backend) -> WebhookCall | None:
        """Return the call for a write; None if the webhook does not match the write. Raises StatusError."""
        taken = self.taken(admission, asked, backend)
        if taken is None or not self._conditions_hold(admission, asked, taken):
            return None
        if admission.dry_run and not self._dry_run:
            raise status.bad_request(f'admission webhook "{self.name}" does not support dry run')
        review = review_of(admission, asked, taken)
        return WebhookCall(key_of(self._id, review), self.name, self._client, self._timeout_s, review, self._mutating)

    def taken(self, admission: Admission, asked: Resource, backend: Backend) -> Resource | None:
        """Return the resource of the request, in the version that the webhook's rules match; None if the rules do not match the
        request.
        """
        return matched(self._match, admission, asked, backend.catalog) if self._match["resourceRules"] else None

    def _conditions_hold(self, admission: Admission, asked: Resource, taken: Resource) -> bool:
        if self._conditions is None:
            return True
        denials, errors = self._conditions.denials(admission, asked, taken, None)
        if wrong := [one.message for one in (*denials, *errors) if one.message != _HOLDS]:
            raise failure(self.name, wrong[0])
        return bool(denials)

    def apply(self, verdict: Verdict, admission: Admission) -> None:
        """Add the verdict's warnings to those of the write.

        Raises StatusError if the verdict refuses the write, or if the call failed and the failure policy is ``Fail``.
        """
        if verdict.failed:
            if self._strict:
                raise failure(self.name, verdict.failed)
            return
        admission.warnings.extend(verdict.warnings)
        if not verdict.allowed:
            raise denial(self.name, verdict)


class Webhooks:
    """All validating or all mutating webhooks of a control plane, in the order of their configurations' names."""

    def __init__(self, backend: Backend, configurations: Collection = CONFIGURATIONS) -> None:
        self._backend = backend
        self._configurations = configurations
        self._webhooks: list[Webhook] = []
        self.load()

    def __bool__(self) -> bool:
        """Return whether there are any webhooks."""
        return bool(self._webhooks)

    def load(self) -> None:
        """Read the stored configurations."""
        found = self._backend.storage.list(self._configurations)
        stored = sorted(found, key=lambda each: text(each, "metadata", "name"))
        mutating = self._configurations == MUTATING_CONFIGURATIONS
        self._webhooks = [
            Webhook(each, webhook, mutating=mutating) for each in stored for webhook in parts(each, "webhooks")
        ]

    @property
    def all(self) -> Sequence[Webhook]:
        """The webhooks, in the order in which they are called."""
        return self._webhooks

    def judge(self, admission: Admission) -> None:
        """Apply the verdicts of the validating webhooks on a write.

        Raises StatusError for the first refusal, and VerdictsNeededError if webhooks have to be called first.
        """
        asked = resource_of(admission)
        if asked is None or admission.kind.group_kind in EXEMPT:
            return
        known = VERDICTS.get()
        found = [(hook, hook.call(admission, asked, self._backend)) for hook in self._webhooks]
        calls = [(hook, call) for hook, call in found if call is not None]
        if needed := [call for _, call in calls if call.key not in known]:
            raise VerdictsNeededError(needed)
        for hook, call in calls:
            hook.apply(known[call.key], admission)
