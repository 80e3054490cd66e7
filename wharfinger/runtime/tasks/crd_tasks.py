"""The tasks EnsureCRDs, AwaitCRDs and EnsureWebhooks. They ensure that CRDs and webhooks are in the cluster before the objects
that use them (spec/runtime §5, §5.2).

EnsureCRDs applies the package's CRDs. It runs in a lane of its own as soon as the package is loaded and on; if it fails, it is
retried or parked there. AwaitCRDs is part of the reconciliation: it waits until the package's own CRDs are established, and
then, for at most ESTABLISHED_S, until other packages have ended their first attempts to apply their CRDs
(:mod:`~wharfinger.runtime.package.first_attempts`). EnsureWebhooks runs after the hooks were started. It publishes the webhooks
of the package's hooks. It also renders the chart, and applies the ``ConversionWebhook`` objects of the chart, before Run
applies the objects that these webhooks convert.
"""

import logging
from contextlib import suppress
from typing import Final

import trio

from wharfinger.cluster.api.errors import ConflictError, ForbiddenError, NotFoundError, UnknownKindError
from wharfinger.cluster.crds.definitions import NotEstablishedError
from wharfinger.cluster.objects.ownership import Owner, is_kept, owner_of
from wharfinger.cluster.watch.object_waits import Laggards
from wharfinger.formats.json.value import JsonObject, find, find_str
from wharfinger.formats.listing import listed
from wharfinger.hooks.webhooks.bound_webhooks import BoundWebhooks, bound_webhooks
from wharfinger.hooks.webhooks.configurations import MUTATING_CONFIGURATION, VALIDATING_CONFIGURATION
from wharfinger.kube.resource import ObjectKey, kind_of, name_of, namespace_of
from wharfinger.packages.definition.crd_files import read_crds, served_kinds
from wharfinger.packages.errors import RenderError
from wharfinger.packages.rendering.template_search import templates_mention
from wharfinger.queue.slots_machine import Kind
from wharfinger.runtime.package.events import Progressed
from wharfinger.runtime.package.findings import CrdsEstablished, WebhooksSearched
from wharfinger.runtime.package.instance import Host, Instance, Tools
from wharfinger.runtime.package.stoppable import waiting
from wharfinger.runtime.resources.custom_resources import CRD
from wharfinger.runtime.status.package_status import Stage, Truth
from wharfinger.runtime.tasks.rendering import applying_reason, drift_of, is_left_to_users, rendered, waiting_for

log = logging.getLogger(__name__)

SHOWN_OTHERS: Final = 5
CRD_LANE: Final = "crds"
ESTABLISHED_S: Final = 60.0
"""The limit on the time for which one attempt waits until CRDs are established."""
CONVERSION_WEBHOOK: Final = "ConversionWebhook"


async def ensure_crds(instance: Instance, tools: Tools, host: Host) -> CrdsEstablished:
    """Apply the package's CRDs, and wait for at most ESTABLISHED_S until they are established.

    Other packages wait only for the first attempt. Their wait ends when the attempt ends, even if it has failed.
    """
    attempt = tools.crd_phase.attempt(instance.id.name)
    try:
        tree = instance.files.tree
        release, namespace = instance.id.release, instance.id.namespace
        if tree is None or not instance.loaded().crds:
            # This ends the watch on the CRDs of the package's earlier version.
            await tools.releases.ensure_crds(release, namespace, ())
            return CrdsEstablished(())
        host.emit(
            instance, Progressed(Stage.CRDS, "ApplyingCRDs", "applying the package's custom resource definitions")
        )
        left_alone = await is_left_to_users(instance, tools)
        crds = await trio.to_thread.run_sync(read_crds, tree, abandon_on_cancel=True)
        late: list[str] = []

        def progress(laggards: Laggards) -> None:
            late[:] = [waiting_for(laggards)] if laggards else []
            if laggards:
                host.emit(instance, Progressed(Stage.CRDS, applying_reason(laggards, "ApplyingCRDs"), late[0]))

        with waiting(tools), trio.move_on_after(ESTABLISHED_S) as patience:
            if not left_alone:
                drift = drift_of(instance.desired.directives)
                await tools.releases.ensure_crds(release, namespace, crds, drift=drift, progress=progress)
        if patience.cancelled_caught:
            raise NotEstablishedError(f"definitions are not established after {ESTABLISHED_S:.0f} s: {'; '.join(late)}")
        return CrdsEstablished(tuple(sorted({kind for crd in crds for kind in served_kinds(crd)})))
    finally:
        tools.crd_phase.end(instance.id.name, attempt)  # this has no effect if the next attempt has already begun


async def await_crds(instance: Instance, tools: Tools, host: Host) -> None:
    """Wait until the CRDs of this package are established. Then wait until each other package has ended its first attempt to
    apply its own CRDs, but at most ESTABLISHED_S.
    """
    others = [name for name in tools.crd_phase.trying() if name != instance.id.name]
    if (
        instance.crds.established is None and instance.status.stages[Stage.CRDS].truth is not Truth.FALSE
    ):  # a failure was already reported
        host.emit(
            instance,
            Progressed(Stage.CRDS, "ApplyingCRDs", "the package's custom resource definitions are being applied"),
        )
    elif instance.crds.established is not None and others:
        named = listed(others, SHOWN_OTHERS)
        host.emit(
            instance,
            Progressed(Stage.CRDS, "WaitingForCRDs", f"waiting for the custom resource definitions of {named}"),
        )
    with waiting(tools):
        while instance.crds.established is None:
            await instance.crds_changed.wait()
        with trio.move_on_after(ESTABLISHED_S):
            await tools.crd_phase.wait()


async def ensure_webhooks(instance: Instance, tools: Tools, host: Host) -> None:
    """Publish the webhooks of the package's hooks, and apply its chart's conversion webhooks before its other objects."""
    await _publish_webhooks(instance, tools, host)
    await _apply_webhooks(instance, tools, host)


async def _publish_webhooks(instance: Instance, tools: Tools, host: Host) -> None:
    """Publish the webhooks of the package's hooks to API servers. Raises HookConfigError, HookError and ClusterError."""
    if tools.webhooks is None:
        return
    bound = bound_webhooks(instance.files.hooks, instance.isolation)
    if bound:
        host.emit(
            instance, Progressed(Stage.WEBHOOKS, "ApplyingWebhooks", "publishing the webhooks of the package's hooks")
        )
        await _check_may_publish(instance, tools, bound)
    with waiting(tools):
        await tools.webhooks.publish(instance.id.name, bound)


async def _check_may_publish(instance: Instance, tools: Tools, bound: BoundWebhooks) -> None:
    """Check that the package's service account itself may write the webhooks in ``bound``.

    The daemon writes them with its own rights. Without this check, a hook could use a webhook to see and change objects to
    which the account has no access. Raises ForbiddenError and other ClusterErrors.
    """
    if instance.account is None and not tools.require_account:
        return
    client = instance.acting(tools)
    needed = {
        ("create", VALIDATING_CONFIGURATION): bool(bound.validating),
        ("create", MUTATING_CONFIGURATION): bool(bound.mutating),
        ("patch", CRD): bool(bound.conversions),
    }
    for (verb, resource), is_needed in needed.items():
        if not is_needed:
            continue
        attributes: JsonObject = {"verb": verb, "group": resource.group, "resource": resource.plural}
        review: JsonObject = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "metadata": {},
            "spec": {"resourceAttributes": attributes},
        }
        if find(await client.create(review), "status", "allowed") is not True:
            user = instance.account.user if instance.account is not None else ""
            raise ForbiddenError(
                403,
                "Forbidden",
                f'{resource.plural}.{resource.group} is forbidden: User "{user}" cannot {verb} resource "{resource.plural}" '
                f'in API group "{resource.group}" at the cluster scope: the webhooks of the package\'s hooks need this',
            )


async def withdraw_webhooks(instance: Instance, tools: Tools, *, conversions: bool) -> None:
    """Remove the published webhooks of the package's hooks, so that API servers do not call them any more. Conversion webhooks
    are removed only if ``conversions`` is true.

    Raises ClusterError.
    """
    if tools.webhooks is not None:
        await tools.webhooks.withdraw(instance.id.name, conversions=conversions)


async def _apply_webhooks(instance: Instance, tools: Tools, host: Host) -> None:
    """Apply the chart's conversion webhooks. A chart whose templates do not mention such webhooks is not rendered here."""
    if not await _mentions_webhooks(instance, tools, host) or await is_left_to_users(instance, tools):
        return
    host.emit(instance, Progressed(Stage.WEBHOOKS, "ApplyingWebhooks", "applying the package's conversion webhooks"))
    try:
        found = await rendered(instance, tools, host)
    except RenderError as error:
        # The chart may need values that beforeHelm hooks set. If the chart has another problem, Run reports it.
        log.info(
            "%s: the chart cannot be rendered yet, so its conversion webhooks are applied only with the release: %s",
            instance.id,
            instance.masked(str(error)),
        )
        return
    webhooks = tuple(obj for obj in found.objects if kind_of(obj)[1] == CONVERSION_WEBHOOK)
    release, namespace = instance.id.release, instance.id.namespace
    await tools.releases.apply_early(release, namespace, webhooks, drift=drift_of(instance.desired.directives))


async def _mentions_webhooks(instance: Instance, tools: Tools, host: Host) -> bool:
    """Return whether the templates of a loaded package's chart mention conversion webhooks."""
    tree = instance.files.tree
    if instance.loaded().chart is None or tree is None:
        return False
    digest = instance.fetched().descriptor.digest.text
    searched = instance.files.mentions_webhooks
    if searched is None or searched[0] != digest:
        mentioned = tools.contents.webhook_mentions.get(digest)
        if mentioned is None:
            async with tools.slots.use(Kind.LOAD, instance.id.name):
                mentioned = await trio.to_thread.run_sync(
                    templates_mention, tree, CONVERSION_WEBHOOK, abandon_on_cancel=True
                )
            tools.contents.webhook_mentions.keep(digest, mentioned)
        host.emit(instance, WebhooksSearched(digest, mentioned))
        return mentioned
    return searched[1]


async def remove_webhooks(instance: Instance, tools: Tools, host: Host) -> None:
    """Delete conversion webhooks of the package that no release record contains. They exist if EnsureWebhooks has applied them,
    but no later run was completed.

    Do nothing if the package is loaded and has no conversion webhooks, to save the request that discovers their kind.
    """
    is_loaded = (
        instance.files.definition is not None
        and instance.files.manifest is not None
        and instance.files.tree is not None
    )
    if is_loaded and not await _mentions_webhooks(instance, tools, host):
        return
    try:
        resource = await tools.cluster.find_resource(CONVERSION_WEBHOOK)
    except UnknownKindError:
        return
    ours = Owner(instance.id.release, instance.id.namespace)
    for obj in (await tools.cluster.list(resource)).items:
        if owner_of(obj) == ours and not is_kept(obj):
            key = ObjectKey(resource, namespace_of(obj), name_of(obj))
            with suppress(NotFoundError, ConflictError):
                await instance.acting(tools).delete(key, uid=find_str(obj, "metadata", "uid"))
