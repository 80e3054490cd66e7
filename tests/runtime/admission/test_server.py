"""The admission server over real TLS, called by a control plane: what it refuses, and what happens without it."""

import json
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trio

from tests.programs import attempt
from tests.runtime.daemon.test_daemon import control_plane, daemon
from tests.runtime.support.killing import Kubectl
from tests.runtime.support.world import World, open_world
from wharfinger.cluster.api.errors import InvalidError
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.httpd.messages import Request, Response
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.admission import server as module
from wharfinger.runtime.admission.certificates import VALID, read_certificate
from wharfinger.runtime.admission.endpoint import CONFIGURATION, Endpoint, endpoint_slice
from wharfinger.runtime.admission.judgement import Judge
from wharfinger.runtime.admission.server import SECRET_NAME, AdmissionServer, open_admission
from wharfinger.runtime.controllers.state_dir import StartError
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.resources.resources import SECRET

LOOPBACK = Endpoint("127.0.0.1", 0)
SECRET_KEY = ObjectKey(SECRET, SYSTEM_NAMESPACE, SECRET_NAME)


REFUSAL = r'admission webhook "packages\.wharfinger\.dev" denied the request: spec\.folder\.path: "?\'?/etc'


def repository(name: str, path: str = "/etc") -> JsonObject:
    """Return a repository for a folder. The API server accepts any path, but the daemon refuses paths outside of its folders."""
    spec: JsonObject = {"folder": {"path": path}}
    return {
        "apiVersion": "wharfinger.dev/v1alpha1",
        "kind": "PackageRepository",
        "metadata": {"name": name},
        "spec": spec,
    }


class Calendar:
    """A clock that the test sets by hand."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now


@asynccontextmanager
async def admitting(world: World, calendar: Calendar | None = None) -> AsyncIterator[AdmissionServer]:
    """Run an admission server, and let the API server of ``world`` call it."""
    judge = Judge(world.runtime, [world.folder])
    async with open_admission(world.client, judge, LOOPBACK, calendar or Calendar(), "wharfinger") as server:
        with trio.fail_after(60):
            await server.ready.wait()
        yield server


async def system_namespace(world: World) -> None:
    await world.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}})


async def test_an_api_server_refuses_exactly_the_objects_that_the_daemon_refuses(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await system_namespace(world)
        async with admitting(world):
            with pytest.raises(InvalidError, match=REFUSAL):
                await world.client.create(repository("a"))
            assert find_str(await world.client.create(repository("a", str(tmp_path))), "metadata", "name") == "a"
        # Without the server, no object is refused and no write is blocked.
        assert find_str(await world.client.create(repository("b")), "metadata", "name") == "b"


async def test_the_service_leads_only_to_the_leader(tmp_path: Path) -> None:
    """The Service has no selector, because a selector would also lead to pods on standby, which refuse connections."""
    async with open_world(tmp_path) as world:
        await system_namespace(world)
        ports: JsonObject = {"ports": [{"name": "admission", "port": 443, "targetPort": "admission"}]}
        metadata: JsonObject = {"name": "hooks", "namespace": SYSTEM_NAMESPACE}
        await world.client.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": ports})
        own = Endpoint("", 0, (SYSTEM_NAMESPACE, "hooks"), own_address())
        before = endpoint_slice(replace(own, pod="192.0.2.77"), 1)  # as the former leader has written it
        assert before is not None
        await world.client.apply(before, field_manager="wharfinger")
        judge = Judge(world.runtime, [world.folder])
        async with open_admission(world.client, judge, own, Calendar(), "wharfinger") as server:
            with trio.fail_after(60):
                await server.ready.wait()
            with pytest.raises(InvalidError, match=REFUSAL):
                await world.client.create(repository("a"))


def own_address() -> str:
    """Return an address of this machine other than loopback. An EndpointSlice must not contain a loopback address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect(("192.0.2.1", 9))  # this sends nothing
        except OSError:
            pytest.skip("this machine has no address but loopback")
        found: str = asked.getsockname()[0]
    return found


async def test_a_certificate_is_replaced_without_a_failed_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SETTLE_S", 0.1)
    calendar, age = Calendar(), VALID - timedelta(days=1)
    calendar.now -= age
    async with open_world(tmp_path) as world:
        await system_namespace(world)
        async with admitting(world, calendar) as server:
            first = read_certificate(await world.client.get(SECRET_KEY))
            await server.keep()
            assert read_certificate(await world.client.get(SECRET_KEY)) == first
            assert first is not None
            # The API server reads the new configuration some time after it was written.
            calendar.now += age
            for _ in range(2):
                with pytest.raises(InvalidError, match=REFUSAL):
                    await world.client.create(repository("a"))
                await server.keep()
            second = read_certificate(await world.client.get(SECRET_KEY))
            assert second is not None
            assert second.authorities[1] == first.authorities[0] != second.authorities[0]
        async with admitting(world, calendar):
            assert read_certificate(await world.client.get(SECRET_KEY)) == second, (
                "the next daemon uses the stored certificate"
            )
            with pytest.raises(InvalidError, match=REFUSAL):
                await world.client.create(repository("a"))


async def test_a_timed_out_check_admits_with_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def judge_for_ever(_self: Judge, _obj: JsonObject, _old: JsonObject | None) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr(Judge, "judge", judge_for_ever)
    monkeypatch.setattr(module, "JUDGE_S", 0.01)
    async with open_world(tmp_path) as world:
        server = AdmissionServer(world.client, Judge(world.runtime), LOOPBACK, Calendar(), "wharfinger")
        body = (
            b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", "object": {}}}'
        )
        answer = await server.handle(Request("POST", "/validate", {}, {}, body))
        assert isinstance(answer, Response)
        assert b'"allowed":true' in answer.body
        assert b"did not check this resource in time" in answer.body
        for method, path, code in (("GET", "/validate", 404), ("POST", "/other", 404), ("POST", "/validate", 400)):
            wrong = await server.handle(Request(method, path, {}, {}, b"x"))
            assert isinstance(wrong, Response)
            assert wrong.status == code


async def test_an_address_in_use_is_an_error_that_names_it(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listeners[0].socket.getsockname()[1]
        with pytest.raises(StartError, match=f"--admission 127.0.0.1:{port}: cannot listen"):
            async with open_admission(
                world.client, Judge(world.runtime), Endpoint("127.0.0.1", port), Calendar(), "wharfinger"
            ):
                pass
        await listeners[0].aclose()


@pytest.mark.slow
def test_kubectl_shows_the_daemons_refusals(tmp_path: Path) -> None:
    with (
        control_plane(tmp_path) as admin,
        daemon(tmp_path, admin, "--admission=127.0.0.1:0", "--local-packages", str(tmp_path)) as running,
    ):
        running.wait_line("admission: serving a certificate")
        kubectl = Kubectl(admin)
        wrong = tmp_path / "repository.json"
        wrong.write_text(json.dumps(repository("r")))
        done = attempt("kubectl", "--kubeconfig", str(admin), "apply", "-f", str(wrong))
        assert done.returncode == 1
        assert re.search(REFUSAL, done.stderr), done.stderr
        shown = kubectl("get", "validatingwebhookconfiguration", CONFIGURATION, "--output=jsonpath={.webhooks[*].name}")
        assert shown == "packages.wharfinger.dev"
        running.process.terminate()
        assert running.wait() == 0
        kubectl("apply", "-f", str(wrong))
