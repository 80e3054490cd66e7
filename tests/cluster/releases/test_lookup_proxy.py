"""Helm's lookup function, which reads the cluster through the proxy of one render, with the real helm 4 and helm 3."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import trio

from tests.cluster.support.clusters import loopback_cluster
from tests.packages.support.charts import chart, tool
from wharfinger.cluster.api.connection import Connection, bearer, load_connection
from wharfinger.cluster.api.http_client import HttpClusterClient
from wharfinger.cluster.releases.lookup_proxy import LIMITS, LookupAccess, open_lookup_access
from wharfinger.formats.json.value import JsonObject, find, find_str
from wharfinger.packages.errors import LookupRefusedError, RenderError
from wharfinger.packages.rendering.helm_renderer import HelmRenderer
from wharfinger.packages.rendering.renderer import Rendered, RenderRequest

REPORT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: report}\ndata:\n  found: {{ %s | toJson | quote }}\n"
CROWN = '(lookup "v1" "Secret" "victimns" "crown").data'


@pytest.fixture(params=["helm", "helm3"])
def program(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@dataclass
class World:
    client: HttpClusterClient
    access: LookupAccess
    folder: Path

    async def render(self, program: str, files: dict[str, str], *, confined: bool = True, text: str = "") -> Rendered:
        folder = chart(self.folder / "chart", files=files)
        renderer = HelmRenderer(tool(program), self.folder / "scratch", access=self.access.open)
        return await renderer.render(
            RenderRequest(
                folder, "", "web", "tenant", {"text": text}, "v1.31.4", (), is_upgrade=False, confined=confined
            )
        )

    async def found(self, program: str, look: str, *, confined: bool = True) -> str:
        rendered = await self.render(program, {"templates/a.yaml": REPORT % look}, confined=confined)
        return next(
            find_str(obj, "data", "found") for obj in rendered.objects if find(obj, "metadata", "name") == "report"
        )


@asynccontextmanager
async def open_world(folder: Path) -> AsyncIterator[World]:
    async with loopback_cluster(folder) as client:
        connection = await trio.to_thread.run_sync(load_connection, folder / "kubeconfig")
        async with open_lookup_access(connection) as access:
            for namespace in ("tenant", "victimns"):
                await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
                secret: JsonObject = {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {"name": "crown", "namespace": namespace, "labels": {"of": namespace}},
                    "stringData": {"k": f"jewel of {namespace}"},
                }
                await client.create(secret)
            yield World(client, access, folder)


REFUSED = {
    CROWN: "Secret victimns/crown",
    '(lookup "v1" "Secret" "victimns" "").items': "all Secret objects of the namespace victimns",
    '(lookup "v1" "Secret" "" "").items': "all Secret objects",
    '(lookup "v1" "Namespace" "" "").items': "all Namespace objects (cluster-scoped)",
    '(lookup "v1" "Namespace" "" "tenant").metadata': "Namespace tenant (cluster-scoped)",
    '(lookup "v1" "Namespace" "" "victimns").metadata': "Namespace victimns (cluster-scoped)",
    '(lookup "rbac.authorization.k8s.io/v1" "ClusterRole" "" "admin").rules': (
        "ClusterRole.rbac.authorization.k8s.io admin (cluster-scoped)"
    ),
    '(lookup "v1" "Node" "tenant" "").items': "all Node objects (cluster-scoped)",
}


@pytest.mark.sampled
async def test_a_lookup_outside_of_the_namespace_is_refused_by_name(program: str, tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        for look, named in REFUSED.items():
            with pytest.raises(LookupRefusedError) as caught:
                await world.found(program, look)
            said = str(caught.value)
            assert said.startswith(f"release web: its chart looks up {named}, outside of the namespace tenant")
            assert "kubectl label namespace tenant wharfinger.dev/cluster-scope=allowed" in said
            assert "install the package as a Module" in said
            assert not caught.value.transient
        assert "amV3ZWwgb2YgdmljdGltbnM=" in await world.found(program, CROWN, confined=False)


async def test_lookups_in_the_own_namespace_are_answered(program: str, tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        assert "amV3ZWwgb2YgdGVuYW50" in await world.found(program, CROWN.replace("victimns", "tenant"))
        names = '(lookup "v1" "Secret" .Release.Namespace "").items | len'
        assert await world.found(program, names) == "1"
        assert await world.found(program, '(lookup "v1" "Secret" "tenant" "none")') == "{}"


async def test_rendered_texts_are_confined_as_well(program: str, tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        files = {"templates/a.yaml": REPORT % "(tpl .Values.text .)"}
        with pytest.raises(LookupRefusedError, match="Secret victimns/crown"):
            await world.render(program, files, text="{{ " + CROWN + " | toJson }}")


async def test_a_chart_that_fails_after_a_refused_lookup_is_not_applied(program: str, tmp_path: Path) -> None:
    """A chart may continue after a refused lookup, and then fail for another reason. Nothing of it is applied."""
    async with open_world(tmp_path) as world:
        files = {"templates/a.yaml": REPORT % CROWN, "templates/b.yaml": '{{ fail "another reason" }}'}
        with pytest.raises(RenderError):
            await world.render(program, files)


async def test_requests_without_the_token_of_the_run_are_refused(tmp_path: Path) -> None:
    path = "/api/v1/namespaces/tenant/secrets/crown"
    async with open_world(tmp_path) as world, httpx.AsyncClient(trust_env=False) as client:
        async with world.access.open("tenant") as look:
            parts = urlsplit(find_str(look.kubeconfig, "clusters", 0, "cluster", "server"))
            base, login = f"http://127.0.0.1:{parts.port}", (parts.username or "", parts.password or "")
            assert parts.hostname == "127.0.0.1"
            assert len(login[1]) > 40
            assert (await client.get(base + path)).status_code == 401
            assert (await client.get(base + path, auth=(login[0], login[1] + "x"))).status_code == 401
            assert (await client.get(base + path, headers={b"authorization": "Basic é".encode()})).status_code == 401
            answer = await client.get(base + path, auth=login)
            assert (answer.status_code, answer.json()["kind"]) == (200, "Secret")
            assert (await client.get(base + path + "x", auth=login)).json()["reason"] == "NotFound"
            for method in ("POST", "PUT", "PATCH", "DELETE"):
                assert (await client.request(method, base + path, auth=login)).status_code == 405
            for odd in ("/metrics", path + "/status", "/api/v1/namespaces/tenant/secrets?watch=1"):
                assert (await client.get(base + odd, auth=login)).status_code == 403
            escaped = "/api/v1/namespaces/tenant%2f..%2fvictimns/secrets/crown"
            assert (await client.get(base + escaped, auth=login)).status_code == 403
            assert look.refusal == ""  # refusals of such requests are not reported, because no template sends them
        async with world.access.open("tenant") as other:
            port = urlsplit(find_str(other.kubeconfig, "clusters", 0, "cluster", "server")).port
            assert (await client.get(f"http://127.0.0.1:{port}{path}", auth=login)).status_code == 401
        with pytest.raises(httpx.ConnectError):
            await client.get(base + path, auth=login)


async def test_helm_receives_none_of_the_daemons_credentials(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.access.open(None) as look:
        assert "test-token" not in str(look.kubeconfig)


async def test_a_cluster_that_refuses_the_daemon_is_reported_as_such(program: str, tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        connection = await trio.to_thread.run_sync(load_connection, tmp_path / "kubeconfig")
        wrong = Connection(connection.server, bearer("wrong"))
        async with open_lookup_access(wrong) as access:
            world.access = access
            with pytest.raises(RenderError, match=r"Unauthorized|credentials") as caught:
                await world.found(program, CROWN, confined=False)
            assert caught.value.transient


def test_the_proxy_accepts_no_bodies() -> None:
    assert LIMITS.body_bytes == 0
