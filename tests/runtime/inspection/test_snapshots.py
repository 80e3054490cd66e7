"""The answers of the inspector about packages (queues, manifests and explanations), and about the scheduler's nodes."""

import logging
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.runtime.support.world import open_world
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.redaction.redaction import redacted_texts
from wharfinger.queue.lane import acting_for
from wharfinger.runtime.inspection import snapshots
from wharfinger.runtime.inspection.package_logs import open_package_logs
from wharfinger.runtime.inspection.snapshots import RuntimeInspector
from wharfinger.runtime.status.package_status import Stage


async def test_a_ready_package_is_shown_with_its_details(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop", settings={"text": "x"})
        await world.until_state("prod", "shop", "Ready")
        inspector = RuntimeInspector(cluster="x", started=datetime.now(UTC), runtime=world.runtime)
        package = await inspector.package("prod.shop")
        assert package is not None
        assert (package.kind, package.package, package.version, package.state) == (
            "Application",
            "web",
            "1.0.0",
            "Ready",
        )
        assert package.digest.startswith("sha256:")
        assert package.release_revision == 1
        assert (package.installed_version, package.installed_digest) == ("1.0.0", package.digest)
        assert package.settings == package.values == {"text": "x"}
        assert [condition.status for condition in package.conditions] == ["True"] * len(Stage)


async def test_a_failing_package_shows_the_task_at_the_head_and_when_it_runs_again(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.create("prod", "shop", package="no-such")
        await world.until_state("prod", "shop", "Failed")
        inspector = RuntimeInspector(cluster="x", started=datetime.now(UTC), runtime=world.runtime)
        (queue,) = await inspector.queues()
        head = queue.tasks[0]
        assert [task.name for task in queue.tasks] == ["Download:1.0.0", "Install:1.0.0", "Load"]
        assert head.attempt == 1
        assert head.retry_in_s is not None
        assert "ArtifactNotFound" in head.error


@pytest.mark.slow
async def test_rendered_manifests_and_scheduler_nodes_are_shown(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.push("broken", "1.0.0", {"templates/fail.yaml": '{{ fail "on purpose" }}'})
        await world.repository()
        await world.create("prod", "shop", settings={"text": "x"})
        await world.create("prod", "broken", package="broken")
        await world.create("prod", "absent", package="absent")
        for name, state in (("shop", "Ready"), ("broken", "Failed"), ("absent", "Failed")):
            await world.until_state("prod", name, state)
        inspector = RuntimeInspector(cluster="x", started=datetime.now(UTC), runtime=world.runtime)
        rendered = await inspector.render("prod.shop")
        assert rendered is not None
        assert (rendered.problem, rendered.has_chart) == ("", True)
        assert 'text: "x"' in rendered.manifest
        broken = await inspector.render("prod.broken")
        assert broken is not None
        assert "on purpose" in broken.problem
        absent = await inspector.render("prod.absent")
        assert absent is not None
        assert absent.problem == "the package is not loaded yet"
        assert await inspector.render("prod.nobody") is None
        nodes = {node.name: node for node in await inspector.scheduler()}
        assert (nodes["prod.shop"].state, nodes["prod.shop"].decision) == ("active", "Enable")
        assert nodes["prod.broken"].state == "scheduled"
        assert "prod.absent" not in nodes


async def test_the_causes_of_a_blocked_package_are_explained(tmp_path: Path) -> None:
    """The cases are a ready package, a package with a missing repository, and an unknown package.

    More cases are in tests/runtime/test_why.py.
    """
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push("web", "1.0.0")
        await world.create("prod", "shop")
        await world.create("prod", "lost", repository="nowhere")
        await world.until_state("prod", "shop", "Ready")
        await world.until_state("prod", "lost", "Failed")
        inspector = RuntimeInspector(cluster="x", started=datetime.now(UTC), runtime=world.runtime)
        ready = await inspector.why("prod.shop")
        assert ready is not None
        assert ready.ready
        lost = await inspector.why("prod.lost")
        assert lost is not None
        assert [cause.subject for cause in lost.causes] == ["prod.lost"]
        assert "RepositoryNotFound" in lost.causes[0].message
        assert await inspector.why("prod.nobody") is None


async def test_settings_are_searched_for_secrets_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[JsonObject] = []

    def counted(document: JsonObject) -> set[str]:
        searched.append(document)
        return redacted_texts(document)

    monkeypatch.setattr(snapshots, "redacted_texts", counted)
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop", settings={"password": "hunter22"})
        await world.until_state("prod", "shop", "Ready")
        inspector = RuntimeInspector(cluster="x", started=datetime.now(UTC), runtime=world.runtime)
        assert "hunter22" in inspector.secrets_of("prod.shop")
        assert "hunter22" in inspector.secrets_of("prod.shop")
        assert len(searched) == 2, "settings and values"
        await world.change("prod", "shop", {"settings": {"password": "hunter33"}})
        await world.until_state("prod", "shop", "Ready")
        assert "hunter33" in inspector.secrets_of("prod.shop")
        await world.delete("prod", "shop")
        await world.until_gone("prod", "shop")
        assert inspector.secrets_of("prod.shop") == ()
        await world.create("prod", "other")
        await world.until_state("prod", "other", "Ready")
        assert inspector.secrets_of("prod.other") == ()
        assert list(inspector._secrets) == ["prod.other"], "the secrets of removed packages are forgotten"


async def test_the_inspector_is_empty_before_the_runtime_has_started() -> None:
    inspector = RuntimeInspector(cluster="x", started=datetime.now(UTC))
    assert await inspector.packages() == ()
    assert await inspector.queues() == ()
    assert await inspector.scheduler() == ()
    assert await inspector.package("a.b") is None
    assert await inspector.render("a.b") is None
    assert await inspector.why("a.b") is None
    assert await inspector.validate("a.b", {}) is None
    assert not (await inspector.daemon()).ready


async def test_details_of_a_package_are_shown(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
        inspector = RuntimeInspector(cluster="x", started=datetime.now(UTC), runtime=world.runtime)
        inspector.find = lambda _: {"metadata": {"labels": {"team": "web"}}}
        with open_package_logs(inspector.secrets_of, "run") as inspector.kept_logs:
            with acting_for("prod.shop"):
                logging.getLogger("wharfinger.test").warning("hello")
            log = await inspector.logs("prod.shop")
            assert log is not None
            assert [line.message for line in log.lines] == ["hello"]
            assert await inspector.logs("prod.none") is None
        package = await inspector.package("prod.shop")
        assert package is not None
        assert package.labels == {"team": "web"}
        resources = await inspector.resources("prod.shop")
        assert resources is not None
        assert [each.kind for each in resources] == ["ConfigMap"]
        assert await inspector.events("prod.shop") == ()
        assert await inspector.events(None) == ()
        assert await inspector.hook_snapshots("prod.shop") == ()
        difference = await inspector.difference("prod.shop")
        assert difference is not None
        assert (difference.changes, difference.unchanged) == ((), 1)
        assert (await inspector.tasks())[0].depth == 0
        for question in (inspector.resources, inspector.events, inspector.difference, inspector.hook_snapshots):
            assert await question("prod.none") is None
