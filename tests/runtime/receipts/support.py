"""Helpers for tests that run trials of packages (`wharfinger.runtime.receipts.trial`)."""

import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from wharfinger.control_plane.serving import Address, serve_control_plane
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.access_rules import JudgedRequest
from wharfinger.runtime.receipts.commands import plan_of
from wharfinger.runtime.receipts.subject import read_subject
from wharfinger.runtime.receipts.trial import Plan, Programs


def programs() -> Programs:
    helm = shutil.which("helm")
    assert helm is not None, "helm is not on PATH: `make setup` installs it"
    return Programs(Path(helm))


@asynccontextmanager
async def open_judge(folder: Path, audit: Callable[[JudgedRequest], None]) -> AsyncIterator[Path]:
    async with serve_control_plane(Address("127.0.0.1", 0), folder / "kubeconfig", "test-token") as serving:
        serving.control_plane.handler.audit = audit
        yield folder / "kubeconfig"


def plan(folder: Path, *, namespace: str = "", objects: tuple[JsonObject, ...] = ()) -> Plan:
    return plan_of(read_subject(folder, namespace, {}), objects, 300.0)
