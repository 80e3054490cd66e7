"""The webhooks of one package, found in the configurations of its hooks, and checked as one set. Pure.

Some rules concern all hooks of a package together: the names of webhooks must be unique in the package, and the webhooks of an
Application must be limited to its namespace. An Application cannot convert custom resources, because a
CustomResourceDefinition (CRD) concerns the whole cluster.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from wharfinger.hooks.config.bindings import AdmissionBinding, ConversionBinding
from wharfinger.hooks.config.problems import HookConfigError
from wharfinger.hooks.config.webhooks import CONVERSION, MUTATING, VALIDATING
from wharfinger.hooks.running.discovery import Hook
from wharfinger.hooks.webhooks.addresses import ReviewKind, safe_name
from wharfinger.hooks.webhooks.chains import Pair

_CLUSTER = "Cluster"


@dataclass(frozen=True, slots=True)
class AdmissionWebhook:
    """One webhook binding of a hook; ``webhook`` is its name in URLs."""

    hook: Hook
    binding: AdmissionBinding
    webhook: str


@dataclass(frozen=True, slots=True)
class Conversions:
    """All conversions of one CRD: each declared pair of versions, with the hook and the binding that declare it first."""

    pairs: Mapping[Pair, tuple[Hook, ConversionBinding]]


@dataclass(frozen=True, slots=True)
class BoundWebhooks:
    """The webhooks of a package. An Application's webhooks apply only to its ``namespace``, which is None for a Module."""

    validating: tuple[AdmissionWebhook, ...] = ()
    mutating: tuple[AdmissionWebhook, ...] = ()
    conversions: Mapping[str, Conversions] = field(default_factory=dict)
    """The conversions of custom resources, by the name of their CRD."""
    namespace: str | None = None

    def __bool__(self) -> bool:
        """Return whether there are any webhooks."""
        return bool(self.validating or self.mutating or self.conversions)

    def admission(self, kind: ReviewKind, webhook: str) -> AdmissionWebhook | None:
        """Return the webhook with this kind and with this name in its URL; None if it does not exist."""
        found = self.validating if kind is ReviewKind.VALIDATING else self.mutating
        return next((one for one in found if one.webhook == webhook), None)


def bound_webhooks(hooks: Sequence[Hook], namespace: str | None) -> BoundWebhooks:
    """Return the webhooks of a package's hooks; ``namespace`` is that of an Application. Raises HookConfigError."""
    return BoundWebhooks(
        tuple(_admission(hooks, VALIDATING, namespace)),
        tuple(_admission(hooks, MUTATING, namespace)),
        _conversions(hooks, namespace),
        namespace,
    )


def _admission(hooks: Sequence[Hook], key: str, namespace: str | None) -> Iterator[AdmissionWebhook]:
    taken: dict[str, Hook] = {}
    for hook in hooks:
        for binding in hook.config.validating if key == VALIDATING else hook.config.mutating:
            webhook = safe_name(binding.name)
            if not webhook or webhook in taken:
                other = (
                    f"in URLs, it would equal the name of a webhook of {taken[webhook].name}"
                    if webhook
                    else "it has no ASCII letters or digits"
                )
                raise _refused(hook, f"{key}.name is invalid: {binding.name[:80]!r}: {other}; choose another name")
            if namespace is not None and any(rule.scope == _CLUSTER for rule in binding.rules):
                why = "hooks of an Application judge only objects in its namespace; write Namespaced, or use a Module"
                raise _refused(hook, f"{key}.rules.scope is invalid: {_CLUSTER}: {why}")
            taken[webhook] = hook
            yield AdmissionWebhook(hook, binding, webhook)


def _conversions(hooks: Sequence[Hook], namespace: str | None) -> Mapping[str, Conversions]:
    found: dict[str, dict[Pair, tuple[Hook, ConversionBinding]]] = {}
    for hook in hooks:
        if namespace is not None and hook.config.conversions:
            raise _refused(
                hook,
                f"{CONVERSION} concerns the whole cluster, so an Application must not use it; install the package as a Module",
            )
        for binding in hook.config.conversions:
            pairs = found.setdefault(binding.crd_name, {})
            for pair in binding.conversions:
                pairs.setdefault(pair, (hook, binding))
    return {name: Conversions(pairs) for name, pairs in found.items()}


def _refused(hook: Hook, problem: str) -> HookConfigError:
    return HookConfigError(hook.name, (problem,))
