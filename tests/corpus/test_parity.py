"""Each chart, installed by our engine on one server and by the real helm on another one. All fields of all objects must be equal.

Only these differences are intended:

- Our engine puts marks on the objects of a release (docs/apply.md).
- Helm never updates CRDs in ``crds/``.
- Our engine retains objects of protected kinds, whose data would be lost, unless their deletion is requested.
- At a rollback, the hooks differ, because a rollback by our engine is an upgrade.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.corpus.charts import NAMES, Version, unpack
from tests.corpus.engines import Engine, open_engine
from tests.corpus.plainly import plainly
from tests.corpus.rendering import render
from tests.corpus.server import NAMESPACE, RELEASE, Server, open_server
from tests.corpus.state import (
    State,
    chosen,
    difference,
    is_protected,
    marked,
    names_of,
    records_of,
    without,
    without_marks,
)
from tests.scale import FULL
from wharfinger.cluster.objects.ownership import is_kept
from wharfinger.cluster.records.release import Release, from_secret
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_str
from wharfinger.formats.yaml.reader import read_yaml_all
from wharfinger.packages.rendering.renderer import Rendered
from wharfinger.packages.rendering.subchart_crds import subchart_crds

pytestmark = pytest.mark.unmeasured

SAMPLE = ("bundled", "custom-resources", "hooked", "observing", "secretive", "tenants", "umbrella")
"""The charts of a default run, each of a different kind."""
TOO_LARGE_FOR_HELM = "heavy"
CHARTS = [name for name in (NAMES if FULL else SAMPLE) if name != TOO_LARGE_FOR_HELM]
HELMS = ["helm", "helm3"] if FULL else ["helm"]
NO_ROLLBACK = {("keepsakes", "helm3")}
"""Charts that a version of helm cannot roll back. Helm 3 fails if the old revision has an object that was removed from the chart
but retained ("no ConfigMap with the name").
"""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two servers, one with our engine and one with helm."""

    ours: Server
    theirs: Server
    engine: Engine
    helm: str
    scratch: Path

    async def states(self) -> tuple[State, State]:
        """Wait until all deletions are complete, and return the states of our server and of helm's."""
        return await self.ours.settled(), await self.theirs.settled()

    async def rendered(self, version: Version, *, upgrade: bool = False) -> Rendered:
        """Apply the CRDs of the version's subcharts on our server, and render the version with the helm program to which the
        engine is compared.
        """
        ours = self.ours
        crds = subchart_crds(version.folder, version.values, is_package=False)
        await self.engine.releases.ensure_crds(RELEASE, NAMESPACE, crds)
        return await render(version, ours.client, self.scratch, ours.kubeconfig, upgrade=upgrade, program=self.helm)


@asynccontextmanager
async def open_pair(folder: Path, helm: str) -> AsyncIterator[Pair]:
    async with (
        open_server(folder / "ours") as ours,
        open_server(folder / "theirs") as theirs,
        open_engine(ours.client) as engine,
    ):
        yield Pair(ours, theirs, engine, helm, folder / "scratch")


class Comparison:
    """A comparison of both servers after each step. It collects all differences, so that one run shows all of them."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._kept: State = {}
        self._apart: list[JsonObject] = []
        self.differences: list[str] = []

    def leave_out(self, objects: Iterable[JsonObject]) -> None:
        """Do not compare these objects from now on."""
        self._apart += objects

    async def compare(self, when: str, objects: Iterable[JsonObject]) -> None:
        """Compare both servers. Exactly the release's current ``objects`` and the retained objects must have our marks."""
        ours, theirs = await self._pair.states()
        current = names_of(objects) & ours.keys()
        theirs = {**chosen(self._kept, lambda name, _: name not in current), **theirs}
        apart = names_of(self._apart)
        said = difference(without(without_marks(ours), apart), without(theirs, apart))
        belongs = current | {name for name in self._kept if name in ours} | self._left_with_marks(ours)
        said += [f"{name} has marks: {name in marked(ours)}" for name in sorted((marked(ours) ^ belongs) - apart)]
        said += records_apart(self._pair)
        self.differences += [f"after the {when}: {line}" for line in said]
        self._kept |= without_marks(chosen(ours, lambda _, obj: is_protected(obj) and bool(marked({"": obj}))))

    def _left_with_marks(self, ours: State) -> set[str]:
        """Return the names of the objects that our engine has retained because of the annotation ``helm.sh/resource-policy:
        keep``.
        """
        return {name for name, obj in ours.items() if is_kept(obj)} & marked(ours)


@pytest.mark.sampled
@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize("name", CHARTS)
@plainly
async def test_a_release_of_ours_is_as_helm_would_have_it(name: str, helm: str, tmp_path: Path) -> None:
    one, two = unpack(name, tmp_path / "charts")
    async with open_pair(tmp_path, helm) as pair:
        comparison = Comparison(pair)
        first = await pair.rendered(one)
        await pair.engine.bring(one, first)
        await pair.theirs.helm_brings(helm, "install", one)
        await comparison.compare("install", first.objects)

        second = await pair.rendered(two, upgrade=True)
        comparison.leave_out([*first.crds, *second.crds])
        await pair.engine.bring(two, second)
        await pair.theirs.helm_brings(helm, "upgrade", two)
        await comparison.compare("upgrade", second.objects)

        comparison.leave_out([*first.hooks, *second.hooks])
        await pair.engine.bring(one, first)
        if (name, helm) in NO_ROLLBACK:
            await pair.theirs.helm_brings(helm, "upgrade", one)
        else:
            await pair.theirs.helm(helm, "rollback", RELEASE, "1")
        await comparison.compare("rollback", first.objects)

        await pair.engine.uninstall()
        await pair.theirs.helm(helm, "uninstall", RELEASE)
        await comparison.compare("uninstall", ())
        assert records_of(pair.ours.plane.backend, RELEASE) == []
    assert not comparison.differences, "\n".join(["", *comparison.differences])


def records_apart(pair: Pair) -> list[str]:
    """Return the differences between our newest record and helm's."""
    ours, theirs = (records_of(server.plane.backend, RELEASE)[-1:] for server in (pair.ours, pair.theirs))
    if len(ours) != len(theirs):
        return [f"records: ours {len(ours)}, theirs {len(theirs)}"]
    for one, other in zip(map(from_secret, ours), map(from_secret, theirs), strict=True):
        said = {
            "revision": (one.revision, other.revision),
            "status": (one.status, other.status),
            "values": (one.values, other.values),
            "manifest": (documents(one.manifest), documents(other.manifest)),
            "hooks": (hook_names(one), hook_names(other)),
            "chart": tuple(
                [find(release.chart, part) for part in ("name", "version", "appVersion")] for release in (one, other)
            ),
        }
        return [f"record: {part}: ours {a}, theirs {b}" for part, (a, b) in said.items() if a != b]
    return []


def documents(manifest: str) -> list[JsonValue]:
    """Return the objects of a manifest, in order."""
    return [document for document in read_yaml_all(manifest, what="manifest") if document is not None]


def hook_names(release: Release) -> list[str]:
    """Return the hooks in a record in sorted order, because helm sorts them by their events."""
    return sorted(f"{find_str(hook, 'kind')} {find_str(hook, 'name')} {find(hook, 'events')}" for hook in release.hooks)
