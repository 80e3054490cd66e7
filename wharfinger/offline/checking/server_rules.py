"""Check manifests by the rules of an API server: an embedded, empty server that runs only during the check.

The custom resource definitions of the tree and of Wharfinger are applied first, then the namespaces of all objects, then
everything else, each by server-side apply, as in the daemon. So the server itself checks schemas and unknown fields, sets
defaults, and runs validation and admission. A kind without a definition is reported once, and its objects are not checked.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, TypeAlias

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ApiError, ClusterError, UnknownKindError
from wharfinger.cluster.crds.definitions import CrdError, await_established
from wharfinger.cluster.releases.options import utc_now
from wharfinger.formats.json.value import JsonObject, find_object, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.offline.checking.findings import Finding, Rule, Severity
from wharfinger.offline.orchestrator.result import Manifest
from wharfinger.offline.store.kinds import SECRET
from wharfinger.runtime.resources.custom_resources import CRD, ensure_crds

OpenServer: TypeAlias = Callable[[], AbstractAsyncContextManager[ClusterClient]]
"""A function that opens an empty API server, and yields a client for it."""

MANAGER: Final = "wharfinger-check"
DEFINITION: Final = "CustomResourceDefinition.apiextensions.k8s.io"
ESTABLISHED_S: Final = 10.0


@dataclass(slots=True)
class _Judge:
    client: ClusterClient
    undefined: set[str]

    async def judge(self, manifest: Manifest) -> AsyncIterator[Finding]:
        """Apply one object to the server of this check, and yield a finding if the server refuses it. An unknown kind is
        reported only for its first object.
        """
        try:
            made = manifest.object
            resource = await self.client.resource_type(find_str(made, "apiVersion"), find_str(made, "kind"))
            await self.client.apply(_appliable(manifest, resource), field_manager=MANAGER, force=True)
        except UnknownKindError:
            if manifest.id.kind not in self.undefined:
                self.undefined.add(manifest.id.kind)
                kind = manifest.id.kind
                message = f"no definition of {kind} is in the tree, so objects of this kind are not checked"
                yield Finding(Rule.UNDEFINED, Severity.WARNING, message)
        except ApiError as error:
            # A message about a Secret may quote its values.
            message = error.message if manifest.id.kind != SECRET else f"the server refuses it: {error.reason}"
            yield Finding(Rule.SERVER, Severity.ERROR, message, manifest.id)
        except ClusterError as error:
            yield Finding(Rule.SERVER, Severity.ERROR, str(error), manifest.id)


async def server_findings(manifests: Iterable[Manifest], client: ClusterClient) -> list[Finding]:
    """Return the findings of an API server: first those about definitions, then about namespaces, then about other objects."""
    judge = _Judge(client, set())
    every = sorted(manifests, key=lambda each: each.id)
    definitions = [each for each in every if each.id.kind == DEFINITION]
    await ensure_crds(client, MANAGER)
    findings = [finding for each in definitions async for finding in judge.judge(each)]
    refused = {finding.id for finding in findings}
    findings += await _established(client, [each for each in definitions if each.id not in refused])
    for namespace in sorted({each.id.namespace for each in every} - {""}):
        obj: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        try:
            await client.apply(obj, field_manager=MANAGER, force=True)
        except ApiError as error:
            findings.append(Finding(Rule.SERVER, Severity.ERROR, f"namespace {namespace}: {error.message}"))
    for each in every:
        if each.id.kind != DEFINITION:
            findings += [finding async for finding in judge.judge(each)]
    return findings


async def _established(client: ClusterClient, definitions: Sequence[Manifest]) -> list[Finding]:
    """Wait for a bounded time until the server serves the kinds of definitions. Return a finding for each one that it rejects."""
    findings: list[Finding] = []
    with trio.move_on_after(ESTABLISHED_S):
        for each in definitions:
            try:
                await await_established(client, [ObjectKey(CRD, "", each.id.name)], now=utc_now)
            except CrdError as error:
                findings.append(Finding(Rule.SERVER, Severity.ERROR, str(error), each.id))
    return findings


def _appliable(manifest: Manifest, resource: ResourceType) -> JsonObject:
    """Return an object as it would be applied, without a status.

    If it lacks a name (because of ``generateName``) or a namespace (as objects of charts do), the name or the namespace from
    its id is used.
    """
    obj: JsonObject = {key: value for key, value in manifest.object.items() if key != "status"}
    named: JsonObject = {"name": manifest.id.name}
    if resource.namespaced and manifest.id.namespace:
        named["namespace"] = manifest.id.namespace
    metadata = find_object(obj, "metadata")
    obj["metadata"] = {**metadata, **{key: value for key, value in named.items() if not find_str(metadata, key)}}
    return obj
