"""Overrides of replicas and resources: they are read, applied to rendered objects, and reported if they match none."""

import copy
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.formats.yaml.reader import read_yaml, read_yaml_all
from wharfinger.packages.errors import RenderError
from wharfinger.packages.rendering.helm_output import read_output
from wharfinger.packages.rendering.renderer import Rendered
from wharfinger.packages.rendering.resource_overrides import (
    MAX_CONTAINERS,
    MAX_QUANTITIES,
    MAX_WORKLOADS,
    ContainerOverride,
    WorkloadOverride,
    override_rendered,
    overrides_checksum,
    read_overrides,
)

OUTPUT = """\
---
# Source: web/crds/shops.yaml
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shops.example.com}
---
# Source: web/templates/config.yaml
# a comment that stays
apiVersion: v1
kind: ConfigMap
metadata:   {name: web}
---
# Source: web/templates/web.yaml
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 1
  template:
    spec:
      initContainers: [{name: init, image: a}]
      containers:
        - name: app
          resources: {requests: {cpu: 10m, memory: 1Mi}, claims: [{name: gpu}]}
        - name: side
---
# Source: web/templates/list.yaml
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: Secret, metadata: {name: web}}
  - apiVersion: batch/v1
    kind: CronJob
    metadata: {name: night}
    spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: app}]}}}}}
---
# Source: web/templates/hook.yaml
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {helm.sh/hook: pre-upgrade}}
spec: {template: {spec: {containers: [{name: app}]}}}
"""


def override(
    objects: Sequence[JsonObject], overrides: Sequence[WorkloadOverride]
) -> tuple[tuple[JsonObject, ...], tuple[str, ...]]:
    """Apply overrides to objects of any shape. The objects are passed as hooks of the chart, because other objects would also
    have to be in the text of the manifest.
    """
    after, unmatched = override_rendered(Rendered((), tuple(objects), (), ""), overrides)
    return after.hooks, unmatched


def one(text: str) -> tuple[WorkloadOverride, ...]:
    return read_overrides(read_yaml(text.encode(), what="overrides"))


def resources(obj: JsonObject, index: int = 0, *path: str) -> JsonValue:
    return find(obj, *(path or ("spec", "template", "spec")), "containers", index, "resources")


def test_overrides_are_read() -> None:
    read = one("""
    - kind: Deployment
      name: web
      replicas: 0
      containers:
        - {name: app, resources: {requests: {cpu: 0.5, memory: 1Gi, example.com/gpu: 2}, limits: {cpu: 1e3}}}
        - {name: side, resources: {limits: {ephemeral-storage: 1.5Gi}}}
    - {kind: CronJob, name: night, containers: [{name: app, resources: {requests: {cpu: 100m}}}]}
    """)
    requests: JsonObject = {"cpu": "0.5", "memory": "1Gi", "example.com/gpu": "2"}
    assert read == (
        WorkloadOverride(
            "Deployment",
            "web",
            0,
            (
                ContainerOverride("app", {"requests": requests, "limits": {"cpu": "1000"}}),
                ContainerOverride("side", {"limits": {"ephemeral-storage": "1.5Gi"}}),
            ),
        ),
        WorkloadOverride("CronJob", "night", None, (ContainerOverride("app", {"requests": {"cpu": "100m"}}),)),
    )
    assert read_overrides([each.document for each in read]) == read
    assert read_overrides(None) == read_overrides([]) == ()


def many(count: int, **more: JsonValue) -> list[JsonValue]:
    return [{"name": f"a{index}", **more} for index in range(count)]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({}, "spec.resourceRequests: expected a list, found an object"),
        ([1], "spec.resourceRequests[0]: expected an object, found an integer"),
        ([None], "spec.resourceRequests[0]: expected an object, found null"),
        ([{"kind": "Pod"}], "[0].kind: 'Pod' is not one of Deployment, StatefulSet, DaemonSet, Job, CronJob"),
        ([{"kind": "Job"}], "[0].name: required"),
        ([{"kind": "Job", "name": "A_b"}], "[0].name: 'A_b' is not a valid name"),
        ([{"kind": "Job", "name": 5}], "[0].name: expected a string, found an integer; put it in quotes"),
        (
            [{"kind": "Job", "name": "a", "replicas": 1}],
            "[0].replicas: a Job has no replicas; only Deployment and StatefulSet",
        ),
        ([{"kind": "Deployment", "name": "a", "replicas": -1}], "[0].replicas: expected an integer from 0 to 10000"),
        ([{"kind": "Deployment", "name": "a", "replicas": True}], "[0].replicas: expected an integer"),
        ([{"kind": "Deployment", "name": "a"}], "[0]: Deployment a: neither replicas nor containers"),
        ([{"kind": "Deployment", "name": "a", "replica": 1}], "[0].replica: unknown key; did you mean 'replicas'?"),
        ([{"kind": "Deployment", "name": "a", "replicas": 1}] * 2, "[1]: Deployment a is listed twice"),
        ([{"kind": "Job", "name": "a", "containers": {}}], "[0].containers: expected a list, found an object"),
        ([{"kind": "Job", "name": "a", "containers": [{}]}], "[0].containers[0].name: required"),
        ([{"kind": "Job", "name": "a", "containers": [{"name": "b"}]}], ".resources: neither requests nor limits"),
        (
            [{"kind": "Job", "name": "a", "containers": [{"name": "b", "resources": {"request": {}}}]}],
            "resources.request: unknown key; did you mean 'requests'?",
        ),
        (
            [{"kind": "Job", "name": "a", "containers": [{"name": "b", "resources": {"limits": []}}]}],
            "resources.limits: expected an object, found a list",
        ),
        (
            [{"kind": "Job", "name": "a", "containers": [{"name": "b", "resources": {"limits": {"C P": 1}}}]}],
            "resources.limits.C P: not the name of a resource",
        ),
        (
            [{"kind": "Job", "name": "a", "containers": many(2, resources={"limits": {"cpu": 1}}) * 2}],
            "containers[2]: container a0 is listed twice",
        ),
        (
            [{"kind": "Job", "name": "a", "containers": many(MAX_CONTAINERS + 1)}],
            f"containers: expected at most {MAX_CONTAINERS} entries, found {MAX_CONTAINERS + 1}",
        ),
        (
            [
                {
                    "kind": "Job",
                    "name": "a",
                    "containers": many(1, resources={"limits": {f"r{n}": 1 for n in range(MAX_QUANTITIES + 1)}}),
                }
            ],
            f"limits: expected at most {MAX_QUANTITIES} quantities, found {MAX_QUANTITIES + 1}",
        ),
        ([None] * (MAX_WORKLOADS + 1), f"expected at most {MAX_WORKLOADS} workloads, found {MAX_WORKLOADS + 1}"),
    ],
)
def test_invalid_overrides_are_refused(value: JsonValue, says: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_overrides(value)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "amount", ["", "1 Gi", "1gi", "-1", "x", "1.2.3", "\u0661", None, True, [], {}, "Infinity", float("inf")]
)
def test_invalid_quantities_are_refused(amount: JsonValue) -> None:
    with pytest.raises(FormatError, match=r"limits\.cpu: expected a quantity such as 100m, 0\.5 or 1Gi, found "):
        read_overrides([{"kind": "Job", "name": "a", "containers": many(1, resources={"limits": {"cpu": amount}})}])


@pytest.mark.parametrize("amount", ["100m", "0.5", "1Gi", "1.", ".5", "1e3", "1E-3", "+2", "1E", "5n", 3, 0.25])
def test_valid_quantities_are_accepted(amount: JsonValue) -> None:
    (read,) = read_overrides(
        [{"kind": "Job", "name": "a", "containers": many(1, resources={"limits": {"cpu": amount}})}]
    )
    assert read.containers[0].resources == {"limits": {"cpu": str(amount)}}


def test_overrides_are_applied_to_objects_and_hooks() -> None:
    rendered = read_output(OUTPUT)
    before = copy.deepcopy(rendered)
    wanted = one("""
    - kind: Deployment
      name: web
      replicas: 3
      containers:
        - {name: app, resources: {requests: {cpu: 100m}, limits: {memory: 1Gi}}}
        - {name: side, resources: {limits: {cpu: 1}}}
        - {name: init, resources: {limits: {cpu: 2}}}
    - {kind: CronJob, name: night, containers: [{name: app, resources: {requests: {cpu: 1m}}}]}
    - {kind: Job, name: migrate, containers: [{name: app, resources: {requests: {cpu: 2m}}}]}
    """)

    after, unmatched = override_rendered(rendered, wanted)

    assert unmatched == ()
    assert rendered == before, "the original render is unchanged"
    config, web, secret, night = after.objects
    assert (config, secret, after.crds) == (before.objects[0], before.objects[2], before.crds)
    assert find(web, "spec", "replicas") == 3
    assert resources(web, 0) == {
        "requests": {"cpu": "100m", "memory": "1Mi"},
        "limits": {"memory": "1Gi"},
        "claims": [{"name": "gpu"}],
    }
    assert resources(web, 1) == {"limits": {"cpu": "1"}}
    assert find(web, "spec", "template", "spec", "initContainers") == [
        {"name": "init", "image": "a", "resources": {"limits": {"cpu": "2"}}}
    ]
    assert resources(night, 0, "spec", "jobTemplate", "spec", "template", "spec") == {"requests": {"cpu": "1m"}}
    assert resources(after.hooks[0]) == {"requests": {"cpu": "2m"}}


def test_the_manifest_matches_the_overridden_objects() -> None:
    rendered = read_output(OUTPUT)
    wanted = one("[{kind: Deployment, name: web, replicas: 3}]")

    after, _ = override_rendered(rendered, wanted)

    assert read_output(after.manifest) == Rendered((), (), after.objects, after.manifest)
    untouched, _, _ = rendered.manifest.partition("---\n# Source: web/templates/web.yaml")
    assert after.manifest.startswith(untouched)
    assert "# a comment that stays" in after.manifest
    assert after.manifest.count("# Source: web/templates/web.yaml\n") == 1
    assert after.manifest.endswith(rendered.manifest.partition("# Source: web/templates/list.yaml")[2])
    assert override_rendered(after, wanted)[0] == after, "a second application changes nothing"


def test_a_list_with_an_overridden_object_is_written_as_single_documents() -> None:
    wanted = one("[{kind: CronJob, name: night, containers: [{name: app, resources: {limits: {cpu: 1}}}]}]")

    after, _ = override_rendered(read_output(OUTPUT), wanted)

    assert after.manifest.count("# Source: web/templates/list.yaml\n") == 2
    kinds = [find(each, "kind") for each in read_yaml_all(after.manifest, what="manifest")]
    assert kinds == ["ConfigMap", "Deployment", "Secret", "CronJob"]


def test_a_document_without_a_source_comment_gets_no_source_comment() -> None:
    text = "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec: {}\n"

    after, _ = override_rendered(read_output(text), one("[{kind: StatefulSet, name: db, replicas: 2}]"))

    assert "Source" not in after.manifest
    assert after.objects[0]["spec"] == {"replicas": 2}


def test_a_manifest_is_parsed_only_if_overrides_exist() -> None:
    rendered = Rendered((), (), (), "--- {")
    assert override_rendered(rendered, ()) == (rendered, ())
    with pytest.raises(RenderError):
        override_rendered(rendered, one("[{kind: StatefulSet, name: db, replicas: 2}]"))


def test_unmatched_overrides_are_returned() -> None:
    objects: list[JsonObject] = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"template": 1}},
        {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "train"}, "spec": {}},
        {"kind": "Deployment", "metadata": {"name": "nameless-version"}},
        {"apiVersion": "apps/v1", "kind": ["Deployment"], "metadata": {"name": "web"}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": None},
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "db"},
            "spec": {"template": {"spec": {"containers": [1, {"name": 1}, {"name": "db", "resources": 1}]}}},
        },
    ]
    wanted = one("""
    - {kind: Deployment, name: web, containers: [{name: app, resources: {limits: {cpu: 1}}}]}
    - {kind: Job, name: train, containers: [{name: app, resources: {limits: {cpu: 1}}}]}
    - kind: StatefulSet
      name: db
      containers: [{name: db, resources: {limits: {cpu: 1}}}, {name: x, resources: {limits: {cpu: 1}}}]
    """)

    changed, unmatched = override(objects, wanted)

    assert unmatched == ("Deployment web: container app", "Job train", "StatefulSet db: container x")
    assert all(new is old for new, old in zip(changed[:5], objects[:5], strict=True))
    assert resources(changed[5], 2) == {"limits": {"cpu": "1"}}
    assert override(objects, ()) == (tuple(objects), ())


def test_the_checksum_ignores_the_order() -> None:
    first = one("""
    - kind: Deployment
      name: web
      replicas: 2
      containers: [{name: a, resources: {limits: {cpu: 1}}}, {name: b, resources: {limits: {cpu: 1}}}]
    - {kind: DaemonSet, name: web, containers: [{name: a, resources: {limits: {cpu: 1, memory: 1}}}]}
    """)
    second = one("""
    - {kind: DaemonSet, name: web, containers: [{name: a, resources: {limits: {memory: 1, cpu: 1}}}]}
    - kind: Deployment
      name: web
      replicas: 2
      containers: [{name: b, resources: {limits: {cpu: 1}}}, {name: a, resources: {limits: {cpu: 1}}}]
    """)
    assert overrides_checksum(first) == overrides_checksum(second) != ""
    assert overrides_checksum(first[:1]) != overrides_checksum(first)
    assert overrides_checksum(()) == ""


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1, 20_000)
    | st.sampled_from(["Deployment", "Job", "web", "1Gi", "x x", "apps/v1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["kind", "name", "replicas", "containers", "resources", "limits", "requests", "spec", "template", "cpu"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(value=JSON)
def test_any_value_is_read_or_refused(value: JsonValue) -> None:
    try:
        read = read_overrides(value)
    except FormatError:
        return
    assert read_overrides([each.document for each in read]) == read


@given(spec=JSON, replicas=st.integers(0, 9))
def test_only_overridden_fields_of_any_object_change(spec: JsonValue, replicas: int) -> None:
    obj: JsonObject = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    before = copy.deepcopy(obj)

    changed, unmatched = override([obj], [WorkloadOverride("Deployment", "web", replicas)])

    assert obj == before
    assert unmatched == ()
    expected = {**spec, "replicas": replicas} if isinstance(spec, dict) else spec
    assert changed == ({**before, "spec": expected},)
