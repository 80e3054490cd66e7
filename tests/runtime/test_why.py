"""The output of `wharfinger why` in real situations. The expected outputs are in tests/runtime/why_goldens.

After a change of the texts, run ``REWRITE_GOLDENS=1 pytest tests/runtime/test_why.py``, and read what `git diff` shows. Each text
has to be true, name one root cause, and have one remedy, or say that the package is ready.
"""

import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.debug.support.socket_client import socket_client
from tests.runtime.support import world as world_module
from tests.runtime.support.objects import repository
from tests.runtime.support.stuck import Situation, come_about
from tests.runtime.support.why_running import RUNNING
from tests.runtime.support.why_situations import BOOTSTRAP, CRDS, FACTS, REQUIREMENTS, SLOTS, TIERS, has_definitions
from tests.runtime.support.world import Ground, World, one_error, open_ground
from wharfinger.cluster.releases.engine import ReleaseEngine
from wharfinger.debug.client.command_output import why_text
from wharfinger.debug.server.server import open_debug_server
from wharfinger.hooks.running.hook_services import HookServices
from wharfinger.kube.resource import ObjectKey
from wharfinger.queue.backoff import BackoffPolicy
from wharfinger.queue.slots_machine import SlotLimits
from wharfinger.runtime.controllers.service import open_controller
from wharfinger.runtime.core import service
from wharfinger.runtime.inspection.snapshots import RuntimeInspector
from wharfinger.runtime.package.instance import Tools
from wharfinger.runtime.resources.resources import CONFIG_MAP

pytestmark = pytest.mark.unmeasured

GOLDENS = Path(__file__).parent / "why_goldens"
REWRITE = bool(os.environ.get("REWRITE_GOLDENS"))
WORLDS: dict[str, tuple[Situation, ...]] = {
    "bootstrap": BOOTSTRAP,
    "crds": CRDS,
    "facts": FACTS,
    "requirements": REQUIREMENTS,
    "running": RUNNING,
    "slots": SLOTS,
    "tiers": TIERS,
}
NAMES = sorted(situation.name for situations in WORLDS.values() for situation in situations)
A_MINUTE = partial(BackoffPolicy, initial_s=60, max_s=60, jitter=0)
_VOLATILE = (
    (re.compile(r"since [\d: -]+ UTC \([^)]*\)"), "since TIME (AGE)"),
    (re.compile(r"next at [\d:]+ UTC \(in \d+ s\)"), "next at TIME (in N s)"),
    (re.compile(r"127\.0\.0\.1:\d{2,}"), "REGISTRY"),
    (re.compile(r"sha256:[0-9a-f]{64}"), "sha256:DIGEST"),
)


class NarrowGround(Ground):
    """The parts of a daemon that runs only one hook at a time."""

    def make_tools(self, services: HookServices, releases: ReleaseEngine, limits: SlotLimits | None = None) -> Tools:
        """Return the tools of `Ground`, limited to one hook at a time."""
        return super().make_tools(services, releases, limits or SlotLimits(hooks=1))


def steady(text: str, folder: Path) -> str:
    """Replace all parts of a text that differ from run to run."""
    text = text.replace(str(folder), "FOLDER")
    for pattern, word in _VOLATILE:
        text = pattern.sub(word, text)
    return text


async def printed(world: World, situations: tuple[Situation, ...]) -> dict[str, str]:
    """Return the output of `wharfinger why` for each situation. The test asks through a debug socket, as the command does."""
    inspector = RuntimeInspector("here", world.runtime.now(), world.runtime)
    path = world.folder / "debug.sock"
    texts: dict[str, str] = {}
    client = socket_client(path)
    async with open_debug_server(path, inspector):
        for situation in situations:
            text, code = await why_text(client, situation.subject, "text", world.runtime.now())
            assert code == (0 if "nothing blocks it" in text else 3)
            texts[situation.name] = steady(text, world.folder)
    return texts


@asynccontextmanager
async def open_why_world(folder: Path, kind: str) -> AsyncIterator[World]:
    """Yield a world (`tests/runtime/support/world.py`) for this kind of situation.

    It also has a second registry, which accepts connections and never answers.
    """
    with one_error():
        async with open_ground(folder) as ground, open_silent_registry() as silent:
            await ground.client.create(repository(f"{ground.address}/packages"))
            await ground.client.create(repository(f"{silent}/packages", name="silent"))
            if kind == "crds":
                async with ground.open_world() as world:
                    await has_definitions(world)
            async with prepared(ground, kind).open_world() as world:
                yield world


def prepared(ground: Ground, kind: str) -> Ground:
    """Return the parts of a daemon for this kind of situation."""
    match kind:
        case "slots":
            return NarrowGround(*(getattr(ground, each.name) for each in fields(Ground)))
        case "bootstrap":
            return replace(ground, bootstrapped_by=ObjectKey(CONFIG_MAP, "prod", "bootstrapped"))
        case _:
            return ground


@asynccontextmanager
async def open_silent_registry() -> AsyncIterator[str]:
    """Open a registry that accepts connections and never answers."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        yield f"127.0.0.1:{listener.socket.getsockname()[1]}"


@pytest.mark.sampled
@pytest.mark.parametrize("kind", sorted(WORLDS))
async def test_why_explains_stuck_packages_as_in_the_goldens(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "BackoffPolicy", A_MINUTE)
    if kind == "facts":  # with a bundle, Modules without spec.enabled are off
        monkeypatch.setattr(world_module, "open_controller", partial(open_controller, enabled_by_default=None))
    texts: dict[str, str] = {}
    with trio.CancelScope() as scope:
        async with open_why_world(tmp_path, kind) as world:
            async with trio.open_nursery() as nursery:
                for situation in WORLDS[kind]:
                    nursery.start_soon(come_about, world, situation)
            texts = await printed(world, WORLDS[kind])
            scope.cancel()  # the test does not wait for hanging tasks
    assert scope.cancelled_caught
    for name, text in texts.items():
        if REWRITE:
            (GOLDENS / f"{name}.txt").write_text(text)
    assert texts == {name: golden(name) for name in texts}


def golden(name: str) -> str:
    path = GOLDENS / f"{name}.txt"
    return path.read_text() if path.exists() else ""


@pytest.mark.parametrize("name", NAMES)
def test_each_golden_has_one_root_cause_and_one_remedy(name: str) -> None:
    lines = golden(name).splitlines()
    remedies = [number for number, line in enumerate(lines) if line.startswith("remedy: ")]
    if lines[0].endswith("ready; nothing blocks it"):
        assert remedies == []
        return
    (remedy,) = remedies
    chain = [line.split()[0] for line in lines[:remedy]]
    assert chain
    assert len(set(chain)) == len(chain)
    for subject, following in zip(lines[:remedy], chain[1:], strict=False):
        assert following in subject, "each cause names the next one"
    assert all(line.startswith("also: ") for line in lines[remedy + 1 :])


def test_each_golden_has_a_situation() -> None:
    assert sorted(path.stem for path in GOLDENS.glob("*.txt")) == NAMES
    assert len(NAMES) >= 25
