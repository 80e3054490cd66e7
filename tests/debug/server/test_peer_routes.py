"""Routes with the paths and formats of the debug servers of addon-operator and Deckhouse."""

import json
from dataclasses import replace

import pytest
import yaml

from tests.debug.server.test_routes import get
from tests.debug.support.canned import CannedInspector
from tests.debug.support.samples import HOSTILE, MANIFEST, NODES, PACKAGES, package, task
from wharfinger.debug.encoding.package import package_to_json, packages_to_json
from wharfinger.runtime.inspector import QueueSnapshot

MODULE = package("ingress-nginx", kind="Module", settings={"replicas": 2, "password": "hunter2"})
WORLD = package("global", kind="Module", settings={"modules": {"publicDomain": "%s.test"}})


def inspector(*tasks: str) -> CannedInspector:
    queued = tuple(replace(task(index, running=False), name=name) for index, name in enumerate(tasks, 1))
    return CannedInspector(
        contents=(replace(MODULE, queue=QueueSnapshot("ingress-nginx", queued)), WORLD),
        nodes=(
            replace(NODES[0], name="ingress-nginx", decision="Enable"),
            replace(NODES[0], name="off", decision="Disable"),
        ),
    )


async def test_deckhouse_paths_without_a_version_are_yaml() -> None:
    answer = await get("/packages/dump")
    assert (answer.status, answer.content_type) == (200, "application/yaml")
    assert yaml.safe_load(answer.body) == packages_to_json(PACKAGES)
    assert yaml.safe_load((await get("/packages/dump", {"name": "prod.shop"})).body) == package_to_json(PACKAGES[1])
    assert yaml.safe_load((await get("/packages/queues/dump")).body)["queues"]
    assert yaml.safe_load((await get("/packages/scheduler/dump")).body)["nodes"]
    assert yaml.safe_load((await get("/packages/global/dump", inspector=inspector())).body)["name"] == "global"
    assert (await get("/packages/render/prod.shop")).body.decode() == MANIFEST.replace("aHVudGVyMg==", "'***'")
    assert (await get("/packages/render/ingress")).status == 400
    assert (await get("/packages/snapshots/prod.shop")).status == 200
    assert (await get("/packages/snapshots/no.such")).status == 404
    assert (await get("/packages/render/prod.shop", {"show-secrets": "true"})).status == 400


async def test_queues_are_listed_in_the_format_of_addon_operator() -> None:
    asked = inspector("HookRun pods")
    document = json.loads((await get("/queue/list.json", {"showEmpty": "true"}, inspector=asked)).body)
    assert document == {
        "active": [
            {
                "name": "main",
                "tasksCount": 1,
                "status": "run first task",
                "tasks": [{"index": 1, "description": "ingress-nginx: HookRun pods"}],
            }
        ],
        "empty": [{"name": "global/main", "tasksCount": 0}],
        "summary": {"mainQueueTasks": 1, "otherQueues": {"active": 0, "empty": 1, "tasks": 0}, "totalTasks": 1},
    }
    text = (await get("/queue/list", {"showEmpty": "true"}, inspector=asked)).body.decode()
    assert text == (
        "Queue 'main': length 1, status: 'run first task'\n\n 1. ingress-nginx: HookRun pods\n\n"
        "Empty queues (1):\n- global/main\n\n"
        "Summary:\n- 'main' queue: 1 task.\n- 1 other queue (0 active, 1 empty): 0 tasks.\n- total 1 task to handle.\n"
    )
    assert "empty" not in json.loads((await get("/queue/list.json", inspector=asked)).body)
    nothing = (await get("/queue/list.text", inspector=inspector())).body.decode()
    assert nothing.startswith("Summary:\n- 'main' queue: empty.\n")
    assert nothing.endswith("- no tasks to handle.\n")


async def test_the_main_queue_is_shown_in_the_format_of_addon_operator() -> None:
    found = yaml.safe_load((await get("/queue/main.yaml", inspector=inspector("a", "b"))).body)
    assert (found["tasksCount"], [each["index"] for each in found["tasks"]]) == (2, [1, 2])
    assert (await get("/queue/main", inspector=inspector())).body == b"Queue 'main': empty\n"
    hostile = (await get("/queue/main", inspector=inspector(HOSTILE))).body.decode()
    assert "\x1b" not in hostile


async def test_modules_and_their_values_are_shown() -> None:
    asked = inspector()
    for path, expected in (
        ("/module/list.json", {"enabledModules": ["ingress-nginx"]}),
        ("/global/list.json", {"globalHooks": [hook.name for hook in WORLD.hooks]}),
        ("/hook/list.json", [hook.name for each in (MODULE, WORLD) for hook in each.hooks]),
        ("/global/config.json", WORLD.settings),
        ("/module/ingress-nginx/values.json", MODULE.values),
    ):
        assert json.loads((await get(path, inspector=asked)).body) == expected
    answer = await get("/module/ingress-nginx/config.yaml", {"global": "true"}, inspector=asked)
    assert answer.content_type == "application/yaml"
    assert yaml.safe_load(answer.body) == {
        "global": WORLD.settings,
        "ingressNginx": {"replicas": 2, "password": "***"},
    }
    assert json.loads((await get("/module/ingress-nginx/values", inspector=asked)).body) == MODULE.values
    assert (await get("/module/ingress-nginx/snapshots.json", inspector=asked)).status == 200
    assert (await get("/module/nope/values.json", inspector=asked)).status == 404
    assert (await get("/module/nope/snapshots.json", inspector=asked)).status == 404
    assert (await get("/module/prod.shop/render")).status == 200


@pytest.mark.parametrize(("path", "status"), [("/", 200), ("/config/list", 404), ("/module/a/b/values.json", 404)])
async def test_only_the_root_and_known_paths_are_answered(path: str, status: int) -> None:
    assert (await get(path)).status == status


async def test_convergence_is_reported() -> None:
    assert (await get("/status/converge")).body.startswith(b"STARTUP_CONVERGE_DONE\n")
    busy = inspector("a")
    assert (
        await get("/status/converge", inspector=busy)
    ).body == b"STARTUP_CONVERGE_DONE\nCONVERGE_IN_PROGRESS: 1 task\n"
    busy.base = replace(busy.base, ready=False)
    assert (await get("/status/converge", inspector=busy)).body == b"STARTUP_CONVERGE_IN_PROGRESS: 1 task\n"
    document = json.loads((await get("/status/converge", {"output": "json"}, inspector=inspector())).body)
    assert document == {"STARTUP_CONVERGE_DONE": True, "CONVERGE_WAIT_TASK": True}
