"""Drift and its authors on the embedded control plane, found with and without a baseline (the answer to our last apply)."""

import copy
from typing import Final

import pytest

from tests.cluster.support.drift_bench import (
    DEPLOYMENT,
    MANAGER,
    Change,
    DriftBench,
    Found,
    drift_bench,
    patch,
    removed,
    replaced,
    yaml_object,
)
from wharfinger.cluster.drift.comparison import Drift, DriftedField, find_drift, without_ignored
from wharfinger.cluster.drift.ignored import BUILT_IN
from wharfinger.cluster.objects.desired import Identity
from wharfinger.formats.json.value import JsonObject

WEB: Final = "/spec/template/spec/containers/0"
SIDE: Final = "/spec/template/spec/containers/1"
AT: Final = "/spec/template/spec/containers"


def applied_by(manager: str, text: str, *, force: bool = True) -> Change:
    async def change(bench: DriftBench, desired: JsonObject) -> None:
        head: JsonObject = {"apiVersion": desired["apiVersion"], "kind": desired["kind"]}
        mine = {**yaml_object(text), **head}
        await (await bench.by(manager)).apply(mine, field_manager=manager, force=force)

    return change


NAMED: Final = "metadata: {name: web, namespace: prod"

CHANGES: Final[dict[str, tuple[Change, Found]]] = {
    "edited": (patch("kubectl-edit", {"spec": {"replicas": 5}}), {("/spec/replicas", "kubectl-edit")}),
    "the same value": (patch("kubectl-edit", {"spec": {"replicas": 2}}), set()),
    "an image in a keyed list": (
        replaced("kubectl-patch", f"{AT}/1/image", "evil:1"),
        {(f"{SIDE}/image", "kubectl-patch")},
    ),
    "an item in a list of an item": (replaced("ed", f"{AT}/0/env/1/value", "3"), {(f"{WEB}/env/1/value", "ed")}),
    "an item removed": (removed("ed", f"{AT}/0/env/0"), {(f"{WEB}/env/0", "")}),
    "a container removed": (removed("ed", f"{AT}/1"), {(SIDE, "")}),
    "an item of ours after one of theirs": (
        replaced("ed", f"{AT}/0", {"name": "first", "image": "x"}, "add"),
        set(),
    ),
    "ports distinguished by a default": (removed("ed", f"{AT}/0/ports/0"), {(f"{WEB}/ports/0", "")}),
    "the second port": (removed("ed", f"{AT}/0/ports/1"), {(f"{WEB}/ports/1", "")}),
    "an atomic list": (replaced("ed", f"{AT}/0/args", ["--port", "81"]), {(f"{WEB}/args", "ed")}),
    "an atomic map": (
        patch("ed", {"spec": {"template": {"spec": {"nodeSelector": {"disk": "hdd"}}}}}),
        {("/spec/template/spec/nodeSelector", "ed")},
    ),
    "a quantity in other words": (replaced("ed", f"{AT}/0/resources/limits/cpu", "1"), set()),
    "a quantity": (
        replaced("ed", f"{AT}/0/resources/limits/cpu", "2"),
        {(f"{WEB}/resources/limits/cpu", "ed")},
    ),
    "a quantity removed": (removed("ed", f"{AT}/0/resources/limits/cpu"), {(f"{WEB}/resources/limits/cpu", "")}),
    "container of our field removed": (
        removed("ed", f"{AT}/0/resources"),
        {(f"{WEB}/resources/limits/cpu", ""), (f"{WEB}/resources/limits/memory", "")},
    ),
    "a field without an owner": (patch("ed", {"spec": {"paused": True, "minReadySeconds": 3}}), set()),
    "a value in our empty field": (
        patch("ed", {"spec": {"template": {"spec": {"securityContext": {"runAsUser": 1}, "volumes": None}}}}),
        set(),
    ),
    "a volume of theirs": (
        patch("ed", {"spec": {"template": {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}}}),
        set(),
    ),
    "a null made something": (replaced("ed", f"{AT}/1/command", ["sh"], "add"), set()),
    "labelled": (patch("kubectl-label", {"metadata": {"labels": {"team": "shop"}}}), set()),
    "a label of ours": (patch("ed", {"metadata": {"labels": {"app": "other"}}}), {("/metadata/labels/app", "ed")}),
    "a label of ours removed": (patch("ed", {"metadata": {"labels": {"app": None}}}), {("/metadata/labels/app", "")}),
    "an annotation of ours": (
        patch("kubectl-annotate", {"metadata": {"annotations": {"note": "theirs", "more": "1"}}}),
        {("/metadata/annotations/note", "kubectl-annotate")},
    ),
    "status": (patch("kube-controller-manager", {"status": {"replicas": 2}}, "status"), set()),
    "scaled by a user": (patch("kubectl", {"spec": {"replicas": 9}}, "scale"), {("/spec/replicas", "kubectl")}),
    "scaled by an autoscaler": (patch("kube-controller-manager", {"spec": {"replicas": 9}}, "scale"), set()),
    # The value 0 is omitted from a Scale object, so the API server records no owner, and the writer is unknown.
    "scaled to zero": (patch("keda-operator", {"spec": {"replicas": 0}}, "scale"), {("/spec/replicas", "")}),
    "scaled by an autoscaler without the subresource": (
        patch("scaler", {"spec": {"replicas": 9}}),
        {("/spec/replicas", "scaler")},
    ),
    "a hook of its own": (patch(MANAGER, {"spec": {"replicas": 9}, "metadata": {"labels": {"app": "hook"}}}), set()),
    "applied, the same values": (applied_by("ed", f"{{{NAMED}}}, spec: {{replicas: 2}}}}"), set()),
    "applied, other values": (applied_by("ed", f"{{{NAMED}}}, spec: {{replicas: 4}}}}"), {("/spec/replicas", "ed")}),
    "applied, fields without an owner": (
        applied_by("ed", f"{{{NAMED}}}, spec: {{paused: true}}}}", force=False),
        set(),
    ),
    "applied, then changed by another": (
        applied_by("ed", f"{{{NAMED}, labels: {{app: ed}}}}}}"),
        {("/metadata/labels/app", "ed")},
    ),
    "two writers at once": (
        patch("ed", {"spec": {"replicas": 7}, "metadata": {"labels": {"app": None}}}),
        {("/spec/replicas", "ed"), ("/metadata/labels/app", "")},
    ),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CHANGES)
async def test_foreign_changes_to_a_deployment_are_found(name: str) -> None:
    change, expected = CHANGES[name]
    desired = yaml_object(DEPLOYMENT)
    async with drift_bench() as bench:
        applied = await bench.apply(desired)
        assert (await bench.found(desired, applied), await bench.found(desired, None)) == (set(), set())

        await change(bench, desired)

        assert await bench.found(desired, applied) == expected
        assert await bench.found(desired, None) == expected, "without a baseline"
        again = await bench.apply(desired)
        assert (await bench.found(desired, again), await bench.found(desired, None)) == (set(), set())


OTHERS: Final[dict[str, tuple[str, Change, Found]]] = {
    "data": (
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: prod}, data: {a: x, b: z}}",
        patch("ed", {"data": {"a": "z", "c": "mine"}}),
        {("/data/a", "ed")},
    ),
    "all data": (
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: prod}, data: {a: x, b: z}}",
        patch("ed", {"data": None}),
        {("/data/a", ""), ("/data/b", "")},
    ),
    "names escaped in a pointer": (
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: prod}, data: {a_b: x, c.d: z}}",
        patch("ed", {"data": {"a_b": "z"}}),
        {("/data/a_b", "ed")},
    ),
    "a secret by stringData": (
        "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: prod}, stringData: {a: x, n: null}, data: {c: eA==}}",
        patch("ed", {"data": {"a": "eXk="}}),
        {("/data/a", "ed")},
    ),
    "a secret by stringData, removed": (
        "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: prod}, stringData: {a: x}, data: {c: eA==}}",
        patch("ed", {"data": {"a": None}}),
        {("/data/a", "")},
    ),
    "a secret by stringData, by a hook": (
        "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: prod}, stringData: {a: x}}",
        patch(MANAGER, {"data": {"a": "eXk="}}),
        set(),
    ),
    "a secret by both": (
        "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: prod}, stringData: {a: x}, data: {a: eXk=}}",
        patch("ed", {"data": {"b": "eXk="}}),
        set(),
    ),
    "a set": (
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: prod, finalizers: [x.test/a, x.test/b]}}",
        patch("ed", {"metadata": {"finalizers": ["x.test/b", "x.test/c"]}}),
        {("/metadata/finalizers/0", "")},
    ),
    "a service": (
        (
            "{apiVersion: v1, kind: Service, metadata: {name: s, namespace: prod},"
            " spec: {selector: {app: web},"
            " ports: [{name: http, port: 80, targetPort: http}, {name: dns, port: 53, protocol: UDP}]}}"
        ),
        patch("ed", [{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 81}]),
        {("/spec/ports/0/targetPort", "ed")},
    ),
    "certificates injected into an empty field": (
        (
            "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: w},"
            " webhooks: [{name: a.x.io, sideEffects: None, admissionReviewVersions: [v1],"
            " clientConfig: {service: {name: s, namespace: prod}}}]}"
        ),
        patch("cainjector", [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "YQ=="}]),
        set(),
    ),
    "certificates injected over ours": (
        (
            "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: w},"
            " webhooks: [{name: a.x.io, sideEffects: None, admissionReviewVersions: [v1], failurePolicy: Fail,"
            " clientConfig: {service: {name: s, namespace: prod}, caBundle: Cg==}}]}"
        ),
        patch(
            "cainjector",
            [
                {"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": "YQ=="},
                {"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"},
            ],
        ),
        {("/webhooks/0/failurePolicy", "cainjector")},
    ),
    "an aggregated role": (
        (
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r},"
            " rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}"
        ),
        patch("ed", {"rules": []}),
        {("/rules", "ed")},
    ),
}


@pytest.mark.parametrize("name", OTHERS)
async def test_foreign_changes_to_other_kinds_are_found(name: str) -> None:
    text, change, expected = OTHERS[name]
    desired = yaml_object(text)
    async with drift_bench() as bench:
        applied = await bench.apply(desired)
        assert (await bench.found(desired, applied), await bench.found(desired, None)) == (set(), set())

        await change(bench, desired)

        assert await bench.found(desired, applied) == expected
        assert await bench.found(desired, None) == expected, "without a baseline"


async def test_rules_of_an_aggregated_role_are_not_drift() -> None:
    desired = yaml_object(OTHERS["an aggregated role"][0])
    async with drift_bench() as bench:
        applied = await bench.apply(desired)
        await bench.patch("clusterrole-aggregation-controller", desired, {"rules": []})

        assert (await bench.found(desired, applied), await bench.found(desired, None)) == (set(), set())


async def test_cleared_managed_fields_make_every_field_drift() -> None:
    """Without managedFields, any of our fields may have another writer, so all count as drift.

    An apply makes them ours again.
    """
    desired = yaml_object(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: prod, labels: {l: x}}, data: {a: x, b: z}}"
    )
    expected = {("/metadata/labels/l", ""), ("/data/a", ""), ("/data/b", "")}
    async with drift_bench() as bench:
        applied = await bench.apply(desired)
        await bench.patch("ed", desired, {"metadata": {"managedFields": [{}]}})

        assert (await bench.found(desired, applied), await bench.found(desired, None)) == (expected, expected)

        again = await bench.apply(desired)
        assert (await bench.found(desired, again), await bench.found(desired, None)) == (set(), set())


async def test_unowned_lists_of_a_deployment_are_reported_as_a_whole_without_a_baseline() -> None:
    desired = yaml_object(DEPLOYMENT)
    async with drift_bench() as bench:
        applied = await bench.apply(desired)
        await bench.patch("ed", desired, {"metadata": {"managedFields": [{}]}})

        with_baseline, without = await bench.found(desired, applied), await bench.found(desired, None)
        assert {(WEB, ""), (SIDE, ""), ("/spec/replicas", "")} <= with_baseline
        assert {("/spec/template/spec/containers", ""), ("/spec/replicas", "")} <= without


async def test_the_baseline_of_another_object_of_that_name_is_not_used() -> None:
    desired = yaml_object("{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: prod}, data: {a: x}}")
    async with drift_bench() as bench:
        applied = await bench.apply(desired)
        other = await bench.by("kubectl-create")
        await other.delete(await bench.key(desired))
        await other.create({**desired, "data": {"a": "x", "b": "more"}})
        assert await bench.found(desired, applied) == {("/data/a", "kubectl-create")}

        await other.delete(await bench.key(desired))
        await bench.apply(desired)  # the apply of an earlier daemon run
        assert await bench.found(desired, applied) == set()


async def test_a_value_written_under_our_manager_name_is_found_by_the_baseline_only() -> None:
    """The field's owner does not change, so the difference is only visible in a comparison with the baseline."""
    desired = yaml_object(DEPLOYMENT)
    theirs = copy.deepcopy(desired)
    theirs["spec"] = {**theirs["spec"], "replicas": 7} if isinstance(theirs["spec"], dict) else {}
    async with drift_bench() as bench:
        applied = await bench.apply(desired)
        await bench.apply(theirs)

        assert await bench.found(desired, applied) == {("/spec/replicas", MANAGER)}
        assert await bench.found(desired, None) == set()


async def test_fields_left_out_by_an_apply_under_our_name_are_drift() -> None:
    desired = yaml_object("{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: prod}, data: {a: x, b: z}}")
    async with drift_bench() as bench:
        applied = await bench.apply(desired)
        await bench.apply({**desired, "data": {"a": "x"}})

        assert (await bench.found(desired, applied), await bench.found(desired, None)) == (
            {("/data/b", "")},
            {("/data/b", "")},
        )


async def test_an_object_being_deleted_has_no_drift() -> None:
    desired = yaml_object(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: prod, finalizers: [x.test/a]}, data: {a: x}}"
    )
    async with drift_bench() as bench:
        applied = await bench.apply(desired)
        await bench.patch("ed", desired, {"data": {"a": "z"}})
        await (await bench.by("ed")).delete(await bench.key(desired))

        assert await bench.found(desired, applied) == set()


async def test_objects_read_in_another_version_are_compared_by_owner_only() -> None:
    desired = yaml_object(
        "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h, namespace: prod},"
        " spec: {minReplicas: 2, maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}"
    )
    async with drift_bench() as bench:
        applied = await bench.apply(desired)
        await bench.patch("ed", desired, {"spec": {"maxReplicas": 9}})
        live = await bench.ours.get(await bench.key(desired))
        live |= {"apiVersion": "autoscaling/v1", "spec": {"maxReplicas": 9}}

        drift = find_drift(desired, applied, live, MANAGER, BUILT_IN)
        assert drift is not None
        assert drift.fields == (DriftedField("/spec/maxReplicas", "ed"),)


def test_an_object_with_unreadable_managed_fields_of_ours_is_not_compared() -> None:
    entry: JsonObject = {"manager": MANAGER, "operation": "Apply", "fieldsV1": {"odd": {}}}
    live: JsonObject = {"metadata": {"managedFields": [entry]}, "data": {}}
    desired = yaml_object("{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: prod}, data: {a: x}}")

    assert find_drift(desired, None, live, MANAGER, BUILT_IN) is None
    assert without_ignored(desired, live, MANAGER, BUILT_IN) is desired


def test_lists_with_unknown_item_keys_are_compared() -> None:
    """An item without an owner is identified in the same way as the other items of its list: here by its value or its index."""
    desired: JsonObject = {
        "apiVersion": "x.test/v1",
        "kind": "T",
        "metadata": {"name": "t"},
        "spec": {"set": ["a", {"b": 1}], "plain": [1], "odd": "text"},
    }
    fields: JsonObject = {"f:spec": {"f:set": {'v:"a"': {}}, "f:odd": {"f:inner": {}}}}
    theirs: JsonObject = {"manager": "ed", "operation": "Update", "fieldsV1": {"f:spec": {"f:plain": {"i:0": {}}}}}
    live: JsonObject = {
        "metadata": {"managedFields": [{"manager": MANAGER, "operation": "Apply", "fieldsV1": fields}, theirs]},
        "spec": {"plain": [1]},
    }

    drift = find_drift(desired, None, live, MANAGER, ())

    assert drift is not None
    assert set(drift.fields) == {
        DriftedField("/spec/odd", ""),
        DriftedField("/spec/plain/0", ""),
        DriftedField("/spec/set/1", ""),
    }


@pytest.mark.parametrize(
    ("drift", "text"),
    [
        (Drift(Identity("Deployment.apps", "prod", "web"), missing=True), "Deployment.apps prod/web: gone"),
        (
            Drift(Identity("ClusterRole", "", "r"), missing=False, fields=(DriftedField("", "ed"),)),
            "ClusterRole r: / by ed",
        ),
        (
            Drift(
                Identity("ConfigMap", "prod", "c"),
                missing=False,
                fields=(DriftedField("/data/a", "ed"), *(DriftedField(f"/data/{n}", "") for n in range(6))),
            ),
            "ConfigMap prod/c: /data/a by ed, /data/0, /data/1, /data/2, /data/3 and 2 more",
        ),
    ],
)
def test_drifts_are_formatted(drift: Drift, text: str) -> None:
    assert str(drift) == text
