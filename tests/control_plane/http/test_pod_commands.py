"""Requests to run commands in Pods: refusals, and the folder of each Pod, in which its commands run.

tests/cluster/api/test_pod_exec.py tests the commands themselves.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest
import trio

from tests.control_plane.support.pod_commands import BUSY, KEY, Kubelet, open_kubelet
from wharfinger.httpd.messages import Request, Response, Upgrade
from wharfinger.kube.remote_command import PROTOCOL

UPGRADE = {
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    "sec-websocket-protocol": f"v4.channel.k8s.io, {PROTOCOL}",
}
PATH = "/api/v1/namespaces/default/pods/busy/exec"
COMMAND = {"command": ("true",)}


async def asked(
    kubelet: Kubelet, query: Mapping[str, tuple[str, ...]], headers: dict[str, str] | None = None
) -> Response | Upgrade:
    answer = await kubelet.plane.front(Request("GET", PATH, query, UPGRADE if headers is None else headers, b""))
    assert isinstance(answer, Response | Upgrade)
    return answer


async def test_a_command_request_is_answered_with_a_websocket(tmp_path: Path) -> None:
    async with open_kubelet(tmp_path) as kubelet:
        await kubelet.start()
        answer = await asked(kubelet, COMMAND)
        assert isinstance(answer, Upgrade)
        assert ("sec-websocket-protocol", PROTOCOL) in answer.headers
        assert ("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") in answer.headers


@pytest.mark.parametrize(
    ("query", "headers", "said"),
    [
        (COMMAND, {}, "Upgrade request required"),
        (COMMAND, UPGRADE | {"upgrade": "SPDY/3.1"}, "Upgrade request required"),
        (COMMAND, UPGRADE | {"sec-websocket-version": "8"}, "Upgrade request required"),
        (COMMAND, UPGRADE | {"sec-websocket-key": ""}, "Upgrade request required"),
        (COMMAND, UPGRADE | {"sec-websocket-protocol": "v4.channel.k8s.io"}, f"expected the subprotocol {PROTOCOL}"),
        ({}, UPGRADE, "at least 1 command"),
        ({"command": ("",)}, UPGRADE, "at least 1 command"),
        ({**COMMAND, "tty": ("true",)}, UPGRADE, "no terminal"),
    ],
)
async def test_invalid_command_requests_are_refused(
    tmp_path: Path, query: Mapping[str, tuple[str, ...]], headers: dict[str, str], said: str
) -> None:
    async with open_kubelet(tmp_path) as kubelet:
        await kubelet.start()
        answer = await asked(kubelet, query, headers)
        assert isinstance(answer, Response)
        assert answer.status == 400
        assert said.encode() in answer.body


async def test_the_folder_of_a_deleted_pod_is_removed(tmp_path: Path) -> None:
    async with open_kubelet(tmp_path) as kubelet:
        uid = await kubelet.start()
        assert (await kubelet.run("touch", "file"))[0] == 0
        assert (kubelet.folder / uid / "file").exists()
        await kubelet.client.delete(KEY)
        commands = kubelet.plane.handler.commands
        assert commands is not None
        with trio.fail_after(60):
            await commands.wait_removed(uid)
        assert not (kubelet.folder / uid).exists()
        other = await kubelet.start(BUSY)
        assert await kubelet.run("ls") == (0, b"", b"")
        assert [folder.name for folder in kubelet.folder.iterdir()] == [other]


async def test_a_command_runs_in_the_pod_folder_with_few_variables(tmp_path: Path) -> None:
    async with open_kubelet(tmp_path) as kubelet:
        uid = await kubelet.start()
        _, out, _ = await kubelet.run(
            "sh", "-c", 'echo "$HOME $TMPDIR $HOSTNAME $PWD"; env | cut -d= -f1 | sort | tr "\\n" " "'
        )
        home, names = out.decode().splitlines()
        folder = str(kubelet.folder / uid)
        assert home == f"{folder} {folder} busy {folder}"
        assert {"HOME", "HOSTNAME", "PATH", "TMPDIR"} <= set(names.split()) <= {
            "HOME", "HOSTNAME", "PATH", "TMPDIR", "PWD", "SHLVL", "OLDPWD", "_", "WHARFINGER_RUN", "WHARFINGER_CHILD"
        }  # fmt: skip


async def test_unread_output_on_stderr_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wharfinger.control_plane.http.pod_commands.STDERR_CHUNKS", 0)
    async with open_kubelet(tmp_path) as kubelet:
        await kubelet.start()
        with pytest.raises(Exception, match="stderr was not read in time"):
            await kubelet.run("sh", "-c", "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done >&2")
