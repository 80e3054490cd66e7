"""The real kubectl with workloads: rollouts, Jobs, Pods, nodes, Services, and waits for conditions."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control_plane.support.served import Served, served
from tests.scale import FULL
from wharfinger.formats.json.value import JsonObject, find, find_list

pytestmark = pytest.mark.unmeasured

LIMIT = "--timeout=60s"


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as running:
        running.run("kubectl", "create", "namespace", "shop")
        running.run("kubectl", "config", "set-context", "--current", "--namespace=shop")
        yield running


def kubectl(plane: Served, *arguments: str) -> list[str]:
    """Run kubectl, and return the lines of its output."""
    return plane.run("kubectl", *arguments).splitlines()


def get(plane: Served, *arguments: str) -> JsonObject:
    found: JsonObject = json.loads(plane.run("kubectl", "get", *arguments, "-o", "json"))
    return found


def revisions(plane: Served) -> list[str]:
    """Return the revisions that ``rollout history`` shows."""
    lines = kubectl(plane, "rollout", "history", "deployment/web")
    return [line.split()[0] for line in lines if line[:1].isdigit()]


@pytest.mark.slow
def test_kubectl_rolls_a_deployment_out_and_back(plane: Served) -> None:
    created = kubectl(plane, "create", "deployment", "web", "--image=registry.example/web:1", "--replicas=2")
    assert created == ["deployment.apps/web created"]
    assert kubectl(plane, "rollout", "status", "deployment/web", LIMIT)[-1] == (
        'deployment "web" successfully rolled out'
    )
    kubectl(plane, "set", "image", "deployment/web", "web=registry.example/web:2")
    kubectl(plane, "rollout", "status", "deployment/web", LIMIT)
    assert revisions(plane) == ["1", "2"]
    assert kubectl(plane, "rollout", "undo", "deployment/web") == ["deployment.apps/web rolled back"]
    kubectl(plane, "rollout", "status", "deployment/web", LIMIT)
    assert revisions(plane) == ["2", "3"]
    assert "registry.example/web:1" in plane.run("kubectl", "rollout", "history", "deployment/web", "--revision=3")

    kubectl(plane, "rollout", "pause", "deployment/web")
    kubectl(plane, "set", "image", "deployment/web", "web=registry.example/web:4")
    assert revisions(plane) == ["2", "3"]
    kubectl(plane, "rollout", "resume", "deployment/web")
    kubectl(plane, "rollout", "restart", "deployment/web")
    kubectl(plane, "rollout", "status", "deployment/web", LIMIT)
    images = kubectl(plane, "get", "pods", "-o", "jsonpath={.items[*].spec.containers[*].image}")
    assert set(images[0].split()) == {"registry.example/web:4"}


@pytest.mark.skipif(not FULL, reason="waits long: runs only in `make test-full`")
def test_a_stuck_rollout_exceeds_its_deadline_and_can_recover(plane: Served) -> None:
    kubectl(plane, "create", "deployment", "web", "--image=registry.example/web:1")
    kubectl(plane, "rollout", "status", "deployment/web", LIMIT)
    kubectl(plane, "annotate", "deployment", "web", "wharfinger.dev/never-ready=true")
    kubectl(plane, "patch", "deployment", "web", "-p", '{"spec":{"progressDeadlineSeconds":2}}')
    kubectl(plane, "set", "image", "deployment/web", "web=registry.example/web:2")
    assert "exceeded its progress deadline" in plane.refused("kubectl", "rollout", "status", "deployment/web", LIMIT)
    kubectl(plane, "annotate", "deployment", "web", "wharfinger.dev/never-ready-")
    kubectl(plane, "rollout", "status", "deployment/web", LIMIT)


@pytest.mark.skipif(not FULL, reason="waits long: runs only in `make test-full`")
def test_kubectl_scales_a_deployment_and_shows_its_objects(plane: Served) -> None:
    kubectl(plane, "create", "deployment", "web", "--image=registry.example/web:1", "--port=80")
    kubectl(plane, "expose", "deployment", "web", "--port=80", "--type=LoadBalancer")
    assert kubectl(plane, "scale", "deployment/web", "--replicas=3") == ["deployment.apps/web scaled"]
    assert kubectl(plane, "wait", "--for=jsonpath={.status.readyReplicas}=3", "deployment/web", LIMIT) == [
        "deployment.apps/web condition met"
    ]
    kubectl(plane, "autoscale", "deployment/web", "--min=1", "--max=5", "--cpu=80%")
    seen = plane.run("kubectl", "get", "all")
    assert seen.count("pod/web-") == 3
    assert all(
        kind in seen for kind in ("service/web", "deployment.apps/web", "replicaset.apps/web-", "autoscaling/web")
    )
    kubectl(plane, "wait", "--for=jsonpath={.status.loadBalancer.ingress[0].ip}", "service/web", LIMIT)
    slices = find_list(get(plane, "endpointslices", "-l", "kubernetes.io/service-name=web"), "items")
    assert len(find_list(slices[0], "endpoints")) == 3
    reasons = {find(one, "reason") for one in find_list(get(plane, "events"), "items")}
    assert {"ScalingReplicaSet", "SuccessfulCreate", "Scheduled"} <= reasons
    assert "ScalingReplicaSet" in plane.run("kubectl", "events", "--for", "deployment/web")
    described = plane.run("kubectl", "describe", "deployment", "web")
    assert "Scaled up replica set" in described
    assert "Metrics API not available" in plane.refused("kubectl", "top", "pods")


@pytest.mark.slow
def test_kubectl_runs_pods_and_jobs(plane: Served) -> None:
    kubectl(plane, "run", "one", "--image=registry.example/one", "--restart=Never")
    kubectl(plane, "run", "two", "--image=registry.example/two")
    kubectl(plane, "create", "job", "once", "--image=registry.example/job")
    kubectl(plane, "create", "cronjob", "often", "--image=registry.example/job", "--schedule=*/5 * * * *")
    kubectl(plane, "create", "job", "now", "--from=cronjob/often")
    kubectl(plane, "wait", "--for=condition=Complete", "job/once", "job/now", LIMIT)
    kubectl(plane, "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/one", LIMIT)
    kubectl(plane, "wait", "--for=condition=Ready", "pod/two", LIMIT)
    assert find(get(plane, "pod", "two"), "spec", "nodeName") == "simulated"
    kubectl(plane, "delete", "pod", "two", LIMIT)
    kubectl(plane, "delete", "job", "once", LIMIT)
    kubectl(plane, "wait", "--for=delete", "pod", "-l", "job-name=once", LIMIT)


@pytest.mark.skipif(not FULL, reason="waits long: runs only in `make test-full`")
def test_kubectl_cordons_and_drains_a_created_node(plane: Served, tmp_path: Path) -> None:
    assert kubectl(plane, "get", "nodes") == []
    manifest = tmp_path / "node.json"
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "one"}}))
    kubectl(plane, "create", "-f", str(manifest))
    kubectl(plane, "wait", "--for=condition=Ready", "node/one", LIMIT)
    kubectl(plane, "create", "deployment", "web", "--image=registry.example/web:1")
    kubectl(plane, "rollout", "status", "deployment/web", LIMIT)
    assert kubectl(plane, "cordon", "one") == ["node/one cordoned"]
    assert "SchedulingDisabled" in plane.run("kubectl", "get", "nodes")
    assert kubectl(plane, "drain", "one", "--timeout=60s")[-1] == "node/one drained"
    kubectl(plane, "wait", "--for=jsonpath={.status.phase}=Pending", "pod", "-l", "app=web", LIMIT)
    assert kubectl(plane, "uncordon", "one") == ["node/one uncordoned"]
    kubectl(plane, "rollout", "status", "deployment/web", LIMIT)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["background", "foreground", "orphan"] if FULL else ["foreground"])
def test_kubectl_deletes_a_deployment_with_each_cascade(way: str, plane: Served) -> None:
    kubectl(plane, "create", "deployment", "web", "--image=registry.example/web:1")
    kubectl(plane, "rollout", "status", "deployment/web", LIMIT)
    kubectl(plane, "delete", "deployment", "web", f"--cascade={way}", LIMIT)
    if way == "orphan":
        assert len(find_list(get(plane, "replicasets"), "items")) == 1
        assert len(find_list(get(plane, "pods"), "items")) == 1
    else:
        kubectl(plane, "wait", "--for=delete", "replicaset,pod", "-l", "app=web", LIMIT)
        assert kubectl(plane, "get", "replicasets,pods") == []
