"""Install a chart with the real helm and then with the daemon on one control plane, and compare the objects.

``python -m tests.corpus.installs CHART_FOLDER…`` prints a table. It has, for each chart, the number of objects, the fields that
differ, and the number of objects that an uninstall leaves on each side. The file ``FOLDER.values.yaml`` next to the folder of a
chart contains its values. The exit code is 1 if an install failed or a field differs. Random values in a chart are not
compared; they are found by rendering the chart twice.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import trio

from tests.corpus.charts import Version
from tests.corpus.server import HELM_S, NAMESPACE, RELEASE, HelmFailedError, Server, make_namespace, open_server
from tests.corpus.state import State, chosen, difference, everything, names_of, state_of, without_marks
from tests.packages.support.charts import tool
from tests.programs import ROOT, wharfinger
from wharfinger.cluster.api.errors import NotFoundError, UnknownKindError
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.storage.interface import Change
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_int, find_list, find_object, find_str
from wharfinger.formats.yaml.reader import YamlLimits, read_yaml, read_yaml_all
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.resources.custom_resources import OF_POOLS, own_crds

LIMITS: Final = YamlLimits(max_bytes=64 * 1024 * 1024, max_characters=256 * 1024 * 1024)
PATIENCE_S: Final = 300
OWN_GROUP: Final = "wharfinger.dev"
GIVEN_OUT: Final = re.compile(r"\.nodePort: ours \d+, theirs \d+$")
"""A difference in a port that the server chose."""
OWN_NAMESPACE: Final = "wharfinger-system"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result for one chart. ``failure`` is set if helm or the daemon did not install it."""

    chart: str
    objects: int
    differences: tuple[str, ...]
    random: int
    left_by_helm: tuple[str, ...]
    left_by_us: tuple[str, ...]
    failure: str = ""

    @property
    def good(self) -> bool:
        """Return whether both sides installed the chart with equal objects."""
        return not self.failure and not self.differences


async def compare(chart: Path, scratch: Path, *, helm: str = "helm", quiet_s: float = 5) -> Comparison:
    """Install and uninstall the chart with helm, then with the daemon, and return the comparison.

    The control plane counts as settled if nothing changes in it for ``quiet_s`` seconds.
    """
    values = scratch / "values.yaml"
    given = chart.parent / f"{chart.name}.values.yaml"
    values.write_bytes(given.read_bytes() if given.exists() else b"{}\n")
    version = Version(chart.name, 1, chart, values)
    async with open_server(scratch / "server") as server:
        backend = server.plane.backend
        before = state_of(backend).keys()
        try:
            await server.helm_brings(helm, "install", version)
        except HelmFailedError as error:
            return Comparison(chart.name, 0, (), 0, (), (), f"helm: {error}")
        except trio.TooSlowError:
            return Comparison(chart.name, 0, (), 0, (), (), f"helm: not done after {HELM_S} seconds")
        theirs = added(await quiet(backend, quiet_s), before)
        await server.helm(helm, "uninstall", RELEASE)
        left_by_helm = added(await quiet(backend, quiet_s), before)
        await clear(server, before)
        async with open_daemon(server, chart.parent, scratch) as log:
            before = state_of(backend).keys()
            await server.client.create(repository(chart.parent))
            await server.client.create(application(version))
            failure = await installed(backend)
            if failure:
                return Comparison(chart.name, len(theirs), (), 0, (), (), f"daemon: {failure} (log: {log})")
            ours, said = await same(backend, before, theirs, quiet_s)
            kind = await server.client.resource_type("wharfinger.dev/v1alpha1", "Application")
            await server.client.delete(ObjectKey(kind, NAMESPACE, RELEASE))
            await changed_until(backend, lambda: not applications(backend))
            left_by_us = added(await quiet(backend, quiet_s), before)
        first, second = (rendered(version, scratch, helm) for _ in range(2))
        drawn = random_paths(first, second)
        asks_for_ports = '"nodePort"' in json.dumps(first)
        left = tuple(
            line for line in said if not line.startswith(drawn) and (asks_for_ports or not GIVEN_OUT.search(line))
        )
        return Comparison(chart.name, len(ours), left, len(said) - len(left), tuple(left_by_helm), tuple(left_by_us))


async def same(backend: Backend, before: AbstractSet[str], theirs: State, seconds: float) -> tuple[State, list[str]]:
    """Wait until no differences from helm's state are left, or nothing changes any more.

    Return the state that the daemon has made, and the differences.
    """
    while True:
        ours = without_marks(added(state_of(backend), before))
        said = difference(ours, theirs)
        if not said or not await next_change(backend, seconds):
            return ours, said


def added(state: State, before: AbstractSet[str]) -> State:
    """Return the objects that did not exist before, except those of the daemon itself."""
    return chosen(state, lambda name, _: name not in before and OWN_GROUP not in name and OWN_NAMESPACE not in name)


async def next_change(backend: Backend, seconds: float) -> bool:
    """Wait for the next change of a compared object. Return False if nothing changes for ``seconds``."""
    was = state_of(backend)
    with trio.move_on_after(seconds):
        await changed_until(backend, lambda: state_of(backend) != was)
        return True
    return False


async def quiet(backend: Backend, seconds: float) -> State:
    """Wait until nothing changes any more, and return the state."""
    while await next_change(backend, seconds):
        pass
    return state_of(backend)


async def changed_until(backend: Backend, holds: Callable[[], bool]) -> None:
    """Wait until ``holds()`` is true, which is checked after each change. Raises trio.TooSlowError after PATIENCE_S seconds."""
    changed = trio.Event()

    def notice(_: Change) -> None:
        changed.set()

    backend.observe(notice)
    with trio.fail_after(PATIENCE_S):
        while not holds():
            await changed.wait()
            changed = trio.Event()


async def clear(server: Server, before: AbstractSet[str]) -> None:
    """Delete all objects that did not exist before, and create the namespace again."""
    namespaces = await server.client.resource_type("v1", "Namespace")
    await server.client.delete(ObjectKey(namespaces, "", NAMESPACE))
    backend = server.plane.backend
    name = f"Namespace {NAMESPACE}"
    await changed_until(backend, lambda: name not in everything(backend))
    for obj in added(state_of(backend), before).values():
        try:
            kind = await server.client.resource_type(find_str(obj, "apiVersion"), find_str(obj, "kind"))
            await server.client.delete(
                ObjectKey(kind, find_str(obj, "metadata", "namespace"), find_str(obj, "metadata", "name"))
            )
        except (NotFoundError, UnknownKindError):
            continue  # It was deleted with its owner or with its definition.
    await changed_until(backend, lambda: not added(state_of(backend), before))
    await make_namespace(server.client)
    await server.client.merge_patch(
        ObjectKey(namespaces, "", NAMESPACE),
        {"metadata": {"labels": {"wharfinger.dev/cluster-scope": "allowed"}}},
    )


@asynccontextmanager
async def open_daemon(server: Server, packages: Path, scratch: Path) -> AsyncIterator[Path]:
    """Run the daemon of this checkout in a separate process, connected to the server, and yield the path of its log."""
    log = scratch / "daemon.log"
    command = wharfinger(
        "run",
        *("--kubeconfig", str(server.kubeconfig), "--state-dir", str(scratch / "state")),
        *("--local-packages", str(packages)),
    )
    with log.open("wb") as output:
        async with trio.open_nursery() as nursery:
            process: trio.Process = await nursery.start(
                partial(trio.run_process, list(command), cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, check=False)
            )
            backend = server.plane.backend
            await changed_until(backend, lambda: defines_own_kinds(backend))
            try:
                yield log
            finally:
                process.terminate()


def defines_own_kinds(backend: Backend) -> bool:
    """Return whether the daemon's own CustomResourceDefinitions are established."""
    own = [
        obj
        for name, obj in everything(backend).items()
        if name.startswith("CustomResourceDefinition.") and OWN_GROUP in name
    ]
    served = [crd for crd in own_crds() if find_str(crd, "spec", "names", "kind") not in OF_POOLS]
    return len(own) >= len(served) and all(
        any(find_str(one, "type") == "Established" for one in find_list(obj, "status", "conditions")) for obj in own
    )


def repository(folder: Path) -> JsonObject:
    """Return a PackageRepository of a folder of charts."""
    return {
        "apiVersion": "wharfinger.dev/v1alpha1",
        "kind": "PackageRepository",
        "metadata": {"name": "default"},
        "spec": {"folder": {"path": str(folder)}},
    }


def application(version: Version) -> JsonObject:
    """Return an Application of a chart in the version that its Chart.yaml names."""
    chart = read_yaml((version.folder / "Chart.yaml").read_bytes(), what="Chart.yaml")
    assert isinstance(chart, dict)
    return {
        "apiVersion": "wharfinger.dev/v1alpha1",
        "kind": "Application",
        "metadata": {"name": RELEASE, "namespace": NAMESPACE},
        "spec": {
            "packageName": version.chart,
            "packageVersion": find_str(chart, "version"),
            "settings": version.values,
        },
    }


def applications(backend: Backend) -> list[JsonObject]:
    """Return the existing Applications."""
    return [obj for name, obj in everything(backend).items() if name.startswith("Application.wharfinger.dev ")]


async def installed(backend: Backend) -> str:
    """Wait until the Application's release is applied (ready or not) or has failed, but at most PATIENCE_S seconds.

    Return "" if the release is applied, otherwise the Application's summary.
    """

    def is_decided() -> bool:
        return any(
            is_installed(one) or find_str(one, "status", "summary", "state") == "Failed"
            for one in applications(backend)
        )

    with suppress(trio.TooSlowError):
        await changed_until(backend, is_decided)
    one = applications(backend)[0]
    return "" if is_installed(one) else json.dumps(find_object(one, "status", "summary"))


def is_installed(app: JsonObject) -> bool:
    """Return whether an Application has a revision. Like ``helm install``, this does not wait until the release is ready."""
    return find_int(app, "status", "release", "revision") > 0


def random_paths(first: State, second: State) -> tuple[str, ...]:
    """Return the beginnings of the lines that describe the differences between two renders of a chart."""
    return tuple(
        {re.split(r": ours| only ours| only theirs", line, maxsplit=1)[0] for line in difference(first, second)}
    )


def rendered(version: Version, scratch: Path, helm: str) -> State:
    """Return the chart's objects by name, as ``helm template`` renders them."""
    arguments = [
        "template",
        RELEASE,
        str(version.folder),
        f"--values={version.values_file}",
        f"--namespace={NAMESPACE}",
    ]
    done = subprocess.run(
        [str(tool(helm)), *arguments], env={**os.environ, "HOME": str(scratch)}, capture_output=True, check=True
    )
    found: State = {}
    for document in read_yaml_all(done.stdout, what="manifest", limits=LIMITS):
        if isinstance(document, dict):
            for name in names_of([document], NAMESPACE):
                found[name] = with_data(document)
    return found


def with_data(obj: JsonObject) -> JsonObject:
    """Move the ``stringData`` of a Secret into ``data``, without base64, and return it. Return any other object unchanged."""
    text = find(obj, "stringData")
    if not isinstance(text, dict):
        return obj
    data: JsonValue = {**find_object(obj, "data"), **text}
    return {**{key: value for key, value in obj.items() if key != "stringData"}, "data": data}


def row(one: Comparison) -> str:
    """Return a comparison as a line of the table."""
    if one.failure:
        return f"| {one.chart} | {one.objects} | **failed** | {one.failure[:600]} | |"
    left = f"{len(one.left_by_helm)} / {len(one.left_by_us)}"
    random = f" ({one.random} random values left out)" if one.random else ""
    return f"| {one.chart} | {one.objects} | {len(one.differences)}{random} | {'; '.join(one.differences)[:600]} | {left} |"


def main(arguments: list[str] | None = None) -> int:
    """Compare the charts on the command line, and write the row of each chart when its comparison ends."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus.installs", description=__doc__)
    parser.add_argument("charts", nargs="+", type=Path, help="folders of charts")
    parser.add_argument("--helm", default="helm", help="helm or helm3")
    parser.add_argument("--quiet-seconds", type=float, default=5, help="how long nothing changes in a cluster at rest")
    args = parser.parse_args(arguments)
    good = True
    write("| chart | objects | differences | which | left by helm / by the daemon |\n|---|---|---|---|---|")
    for chart in args.charts:
        with tempfile.TemporaryDirectory() as scratch:
            one = trio.run(partial(compare, helm=args.helm, quiet_s=args.quiet_seconds), chart.resolve(), Path(scratch))
        good = good and one.good
        write(row(one))
        for line in (*one.differences, *sorted({*one.left_by_helm} ^ {*one.left_by_us})):
            sys.stderr.write(f"    {one.chart}: {line}\n")
    return 0 if good else 1


def write(line: str) -> None:
    """Write a line of the table without delay."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
