"""What snapshots show of a package and its queue."""

from datetime import UTC, datetime
from pathlib import Path

from tests.runtime.world import open_world
from wharfinger.runtime.snapshots import RuntimeInspector


async def test_a_ready_package(tmp_path: Path) -> None:
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
        assert package.settings == {"text": "x"}
        assert [condition.status for condition in package.conditions] == ["True"] * 5


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
