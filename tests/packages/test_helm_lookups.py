"""Charts that call `lookup`, rendered by the real helm 4 and helm 3 with a control plane."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import trio

from tests.cluster.support.clusters import loopback_cluster
from tests.packages.support.charts import WEB_SERVICE, chart, helm, tool
from tests.packages.support.looking import given
from wharfinger.cluster.api.connection import load_connection
from wharfinger.cluster.api.http_client import HttpClusterClient
from wharfinger.cluster.releases.lookup_proxy import open_lookup_access
from wharfinger.formats.json.value import JsonObject, as_object, decode_json, find
from wharfinger.packages.errors import RenderError
from wharfinger.packages.rendering import helm_renderer
from wharfinger.packages.rendering.entry_cache import EntryCache
from wharfinger.packages.rendering.helm_renderer import ClusterLook, HelmRenderer, RenderLimits
from wharfinger.packages.rendering.render_cache import CachingRenderer
from wharfinger.packages.rendering.renderer import RenderRequest

LOOK = '{{ (lookup "v1" "ConfigMap" "default" "seen").data | toJson | quote }}'
REPORT = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: report, namespace: default}
data:
  found: %s
  kube: {{ .Capabilities.KubeVersion.Version }}
  release: {{ .Release | toJson | quote }}
"""
MADE: JsonObject = {"apiVersion": "v2", "name": "web", "version": "1.2.3"}


@pytest.fixture(autouse=True)
def patient_removal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the time limit for removing a run's folder, because that may take long on a busy machine."""
    monkeypatch.setattr(helm_renderer, "REMOVE_S", 300.0)


@pytest.fixture(params=["helm", "helm3"])
def program(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@dataclass
class World:
    client: HttpClusterClient
    renderer: HelmRenderer
    kubeconfig: Path
    asked: int = 0
    namespaces: list[str | None] = field(default_factory=list)

    async def direct(self) -> JsonObject:
        """Return the current kubeconfig of the control plane itself."""
        return as_object(decode_json(self.kubeconfig.read_bytes(), max_bytes=10**6, what="kubeconfig"), "kubeconfig")

    async def put(self, name: str, **data: str) -> None:
        body: JsonObject = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "default"},
            "data": {**data},
        }
        await self.client.create(body)


@asynccontextmanager
async def open_world(program: str, folder: Path) -> AsyncIterator[World]:
    async with (
        loopback_cluster(folder) as client,
        open_lookup_access(load_connection(folder / "kubeconfig")) as looks,
    ):
        world = World(client, HelmRenderer(tool(program), folder / "unused"), folder / "kubeconfig")

        def access(namespace: str | None, user: str) -> AbstractAsyncContextManager[ClusterLook]:
            world.asked += 1
            world.namespaces.append(namespace)
            return looks.open(namespace, user)

        world.renderer = HelmRenderer(tool(program), folder / "scratch", access=access)
        yield world
        scratch = folder / "scratch"
        assert not scratch.exists() or list(scratch.iterdir()) == []


def asked(folder: Path, values: JsonObject | None = None, *, package: bool = False, digest: str = "d") -> RenderRequest:
    chart_file = MADE if package else None
    return RenderRequest(
        folder, digest, "web", "prod", values or {}, "v1.31.4", (), is_upgrade=False, chart_file=chart_file
    )


async def report_of(world: World, request: RenderRequest) -> JsonObject:
    rendered = await world.renderer.render(request)
    return next(as_object(obj["data"], "data") for obj in rendered.objects if find(obj, "metadata", "name") == "report")


SUB_CHART = "apiVersion: v2\nname: db\nversion: 1.0.0\n"
CHARTS = {
    "template": {"templates/report.yaml": REPORT % LOOK},
    "helper": {
        "templates/report.yaml": REPORT % '{{ include "look" . }}',
        "templates/_look.tpl": '{{ define "look" }}' + LOOK + "{{ end }}",
    },
    "sub-chart": {"charts/db/Chart.yaml": SUB_CHART, "charts/db/templates/report.yaml": REPORT % LOOK},
    "helper of a sub-chart": {
        "charts/db/Chart.yaml": SUB_CHART,
        "charts/db/templates/_look.tpl": '{{ define "look" }}' + LOOK + "{{ end }}",
        "templates/report.yaml": REPORT % '{{ include "look" . }}',
    },
    "text in values": {"templates/report.yaml": REPORT % "{{ tpl .Values.text . }}"},
    "text in a file": {"templates/report.yaml": REPORT % '{{ tpl (.Files.Get "a.txt") . }}', "a.txt": LOOK},
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("where", CHARTS)
@pytest.mark.parametrize("package", [True, False])
async def test_a_lookup_finds_an_existing_object(where: str, program: str, tmp_path: Path, *, package: bool) -> None:
    folder = chart(tmp_path / "chart", files=CHARTS[where])
    async with open_world(program, tmp_path) as world:
        await world.put("seen", a="here")
        report = await report_of(world, asked(folder, {"text": LOOK}, package=package))
        assert report["found"] == '{"a":"here"}'
        assert world.asked == 1


async def test_a_lookup_without_access_finds_nothing(program: str, tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart", files=CHARTS["template"])
    async with open_world(program, tmp_path) as world:
        await world.put("seen", a="here")
        world.renderer = HelmRenderer(tool(program), tmp_path / "scratch")
        assert (await report_of(world, asked(folder)))["found"] == "null"
        assert await world.renderer.identity(asked(folder)) is not None


async def test_a_chart_without_lookups_is_rendered_without_the_cluster(program: str, tmp_path: Path) -> None:
    async def no_access() -> JsonObject:
        raise AssertionError("nobody looks")

    renderer = HelmRenderer(tool(program), tmp_path / "scratch", access=given(no_access))
    rendered = await renderer.render(asked(WEB_SERVICE))
    assert rendered == await HelmRenderer(tool(program), tmp_path / "scratch").render(asked(WEB_SERVICE))


async def test_renders_with_lookups_are_not_cached(program: str, tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart", files=CHARTS["template"])
    async with open_world(program, tmp_path) as world:
        cache = CachingRenderer(world.renderer, EntryCache(tmp_path / "renders"))
        before = await cache.render(asked(folder))
        await world.put("seen", a="here")
        after = await cache.render(asked(folder))
        assert before.objects != after.objects
        assert (cache.statistics().uncached, cache.statistics().entries) == (2, 0)
        assert not (tmp_path / "renders").exists()


async def test_values_decide_whether_a_chart_uses_lookups(program: str, tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart", files=CHARTS["text in values"])
    async with open_world(program, tmp_path) as world:
        assert await world.renderer.identity(asked(folder, {"text": "x"})) is not None
        assert await world.renderer.identity(asked(folder, {"text": LOOK})) is None
        assert (await report_of(world, asked(folder, {"text": "x"})))["found"] == "x"
        assert world.asked == 0


async def test_the_use_of_lookups_is_cached_by_chart_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = chart(tmp_path / "chart", files=CHARTS["template"])
    monkeypatch.setattr(helm_renderer, "MAX_KNOWN", 2)
    async with open_world("helm", tmp_path) as world:
        assert await world.renderer.identity(asked(folder)) is None
        assert await world.renderer.identity(asked(folder, digest="")) is None
        (folder / "templates" / "report.yaml").unlink()
        assert await world.renderer.identity(asked(folder)) is None
        assert await world.renderer.identity(asked(folder, digest="")) is not None
        for digest in ("e", "f"):
            assert await world.renderer.identity(asked(folder, digest=digest)) is not None
        assert await world.renderer.identity(asked(folder)) is not None  # Its entry was evicted.


async def test_lookups_work_for_both_install_and_upgrade(program: str, tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart", files=CHARTS["template"])
    async with open_world(program, tmp_path) as world:
        for is_upgrade in (False, True):
            report = await report_of(world, replace(asked(folder), is_upgrade=is_upgrade))
            assert f'"IsUpgrade":{str(is_upgrade).lower()}' in str(report["release"])


async def test_helm_4_reads_the_kubernetes_version_from_the_cluster(program: str, tmp_path: Path) -> None:
    """Helm 3 uses the version that it is given. The daemon always gives it the version of the cluster."""
    folder = chart(tmp_path / "chart", files=CHARTS["template"])
    async with open_world(program, tmp_path) as world:
        server = await world.client.server_version()
        assert server != "v1.31.4"
        report = await report_of(world, asked(folder))
        assert report["kube"] == (server if program == "helm" else "v1.31.4")


async def test_existing_objects_do_not_fail_a_render(program: str, tmp_path: Path) -> None:
    """`helm install --dry-run=server` would refuse an object of another owner, or one that violates its schema. A render must
    not.
    """
    odd = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: odd}\nnone: of its fields\n"
    folder = chart(tmp_path / "chart", files={"templates/report.yaml": REPORT % LOOK + odd})
    async with open_world(program, tmp_path) as world:
        await world.put("report", a="somebody else's")
        assert (await report_of(world, asked(folder)))["found"] == "null"


async def test_crds_hooks_and_notes_are_separated_with_lookups(program: str, tmp_path: Path) -> None:
    files = {
        "templates/report.yaml": REPORT % LOOK,
        "templates/NOTES.txt": 'notes {{ (lookup "v1" "ConfigMap" "default" "seen").data.a }}',
        "templates/test.yaml": 'apiVersion: v1\nkind: Pod\nmetadata: {name: t, annotations: {"helm.sh/hook": test}}\n',
        "crds/a.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: piers.x}\n",
    }
    folder = chart(tmp_path / "chart", files=files)
    async with open_world(program, tmp_path) as world:
        await world.put("seen", a="here")
        rendered = await world.renderer.render(asked(folder))
        assert rendered.notes == "notes here"
        assert [find(obj, "metadata", "name") for obj in rendered.crds] == ["piers.x"]
        assert rendered.tests == rendered.hooks != ()


async def test_unknown_kinds_and_existing_objects_do_not_fail_a_render(program: str, tmp_path: Path) -> None:
    """A render installs nothing, so objects may be of an unknown kind, violate their schema or belong to another owner."""
    custom = "---\napiVersion: wharf.example/v1\nkind: Pier\nmetadata: {name: a}\n"
    taken = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: seen, namespace: default}\nnonsense: 1\n"
    hook = (
        "---\napiVersion: wharf.example/v1\nkind: Pier\nmetadata: {name: h, annotations: {helm.sh/hook: pre-install}}\n"
    )
    folder = chart(tmp_path / "chart", files={"templates/report.yaml": REPORT % LOOK + custom + taken + hook})
    async with open_world(program, tmp_path) as world:
        await world.put("seen", a="here")
        rendered = await world.renderer.render(asked(folder))
        assert [find(obj, "metadata", "name") for obj in rendered.objects] == ["web", "report", "seen", "a"]
        assert [find(obj, "metadata", "name") for obj in rendered.hooks] == ["h"]


async def test_manifests_are_equal_with_and_without_lookups(program: str, tmp_path: Path) -> None:
    """The manifests are equal byte for byte, including the order of documents, the line ends, and the hooks."""
    block = "data:\n  text: |+\n    a\n\n"
    several = "---\n".join(
        f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: {kind.lower()}}}\n{block}\n"
        for kind in ("Secret", "ConfigMap")
    )
    job = f"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: h, annotations: {{helm.sh/hook: test}}}}\n{block}\n"
    files = {
        "templates/a.yaml": several,
        "templates/deep/b.yaml": several.replace("name: ", "name: b-") + job,
        "charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n",
        "charts/db/templates/a.yaml": several.replace("name: ", "name: db-"),
        "charts/db/crds/a.yaml": "apiVersion: v1\nkind: Crd\nmetadata: {name: c}\n",
        "templates/NOTES.txt": "notes",
    }
    plain = chart(tmp_path / "plain", files=files)
    looking = chart(tmp_path / "looking", files={**files, "templates/_a.tpl": '{{ define "a" }}' + LOOK + "{{ end }}"})
    async with open_world(program, tmp_path) as world:
        one, other = await world.renderer.render(asked(plain)), await world.renderer.render(asked(looking, digest="l"))
        assert (one.looked, other.looked) == (False, True)
        assert replace(other, looked=False) == one
        assert (len(one.objects), len(one.hooks), len(one.crds)) == (7, 1, 1)


async def test_failures_of_charts_with_lookups_are_transient(program: str, tmp_path: Path) -> None:
    needs = '{{ if not (lookup "v1" "ConfigMap" "default" "seen") }}{{ fail "seen is missing" }}{{ end }}'
    folder = chart(tmp_path / "chart", files={"templates/a.yaml": needs})
    async with open_world(program, tmp_path) as world:
        with pytest.raises(RenderError, match="seen is missing") as caught:
            await world.renderer.render(asked(folder))
        assert caught.value.transient
        await world.put("seen")
        assert (await world.renderer.render(asked(folder))).objects


@pytest.mark.parametrize("harm", ["token", "port"])
async def test_a_cluster_that_refuses_access_is_a_transient_error(harm: str, program: str, tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart", files=CHARTS["template"])
    async with open_world(program, tmp_path) as world:
        text = world.kubeconfig.read_text()
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        free = listeners[0].socket.getsockname()[1]
        await listeners[0].aclose()
        port = str(find(decode_json(text, max_bytes=10**6, what="x"), "clusters", 0, "cluster", "server")).rpartition(
            ":"
        )[2]
        world.kubeconfig.write_text(
            text.replace("test-token", "wrong") if harm == "token" else text.replace(port, str(free))
        )
        world.renderer = HelmRenderer(tool(program), tmp_path / "scratch", access=given(world.direct))
        says = "credentials|Unauthorized" if harm == "token" else "refused"
        with pytest.raises(RenderError, match=says) as caught:
            await world.renderer.render(asked(folder))
        assert caught.value.transient
        assert "test-token" not in str(caught.value)
        assert str(tmp_path) not in str(caught.value)


@pytest.mark.slow
async def test_a_silent_cluster_fails_the_render_at_its_timeout(program: str, tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart", files=CHARTS["template"])
    async with _silent() as port:
        document: JsonObject = {
            "clusters": [{"name": "a", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "contexts": [{"name": "a", "context": {"cluster": "a"}}],
            "current-context": "a",
        }

        async def access() -> JsonObject:
            return document

        renderer = HelmRenderer(
            tool(program), tmp_path / "scratch", limits=RenderLimits(wall_s=0.5), access=given(access)
        )
        with pytest.raises(RenderError, match=r"longer than 0\.5 s") as caught:
            await renderer.render(asked(folder))
        assert caught.value.transient


@asynccontextmanager
async def _silent() -> AsyncIterator[int]:
    """Open a port that accepts connections and never answers."""
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        yield int(listener.socket.getsockname()[1])


async def test_errors_of_the_access_function_are_raised(tmp_path: Path) -> None:
    class NoTokenError(Exception):
        pass

    async def access() -> JsonObject:
        raise NoTokenError

    folder = chart(tmp_path / "chart", files=CHARTS["template"])
    renderer = HelmRenderer(tool("helm"), tmp_path / "scratch", access=given(access))
    with pytest.raises(NoTokenError):
        await renderer.render(asked(folder))
    assert list((tmp_path / "scratch").iterdir()) == []


async def test_a_missing_helm_is_reported(tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart", files=CHARTS["template"])

    async def access() -> JsonObject:
        return {}

    renderer = HelmRenderer(Path("/nonexistent/helm"), tmp_path / "scratch", access=given(access))
    with pytest.raises(RenderError, match=r"helm cannot be run: .*; check --helm") as caught:
        await renderer.render(asked(folder))
    assert caught.value.transient


@pytest.mark.sampled
async def test_a_render_with_lookups_equals_a_server_dry_run_of_helm(program: str, tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart", files=CHARTS["template"])
    async with open_world(program, tmp_path) as world:
        await world.put("seen", a="here")
        command = ["install", "web", str(folder), "-n", "prod", "--dry-run=server", "-o", "json"]
        run = [*command, f"--kubeconfig={world.kubeconfig}"]
        said = await trio.to_thread.run_sync(lambda: helm(program, *run, home=tmp_path))
        release = as_object(
            decode_json(said[said.index("{") : said.rindex("}") + 1], max_bytes=10**7, what="x"), "release"
        )
        version = await world.client.server_version()
        rendered = await world.renderer.render(replace(asked(folder), kube_version=version))
        assert rendered.manifest.split() == str(release["manifest"]).split()


async def test_values_that_cannot_be_encoded_are_refused(tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart", files=CHARTS["text in values"])
    async with open_world("helm", tmp_path) as world:
        with pytest.raises(RenderError, match="the values cannot be passed to helm") as caught:
            await world.renderer.render(asked(folder, {"text": "\ud800"}))
        assert not caught.value.transient
        assert world.asked == 0
