"""The progress of builds, as text, and as a real build reports it."""

from pathlib import Path

from tests.offline.support import OPTIONS, kustomization, open_test_tools, release, with_chart, write_tree
from wharfinger.offline.orchestrator.orchestrator import Config, open_orchestrator
from wharfinger.offline.orchestrator.progress import Progress
from wharfinger.offline.store.kinds import GIT_REPOSITORY, HELM_RELEASE, KUSTOMIZATION
from wharfinger.runtime.fixpoint.model import Id


def test_the_progress_text_names_counts_and_current_nodes() -> None:
    progress = Progress()
    assert progress.text() == "reading the tree"
    first, second = progress.run(), progress.run()
    source, release_id, other = Id(GIT_REPOSITORY, "a", "s"), Id(HELM_RELEASE, "a", "r"), Id(KUSTOMIZATION, "a", "k")
    first.known.update({source, release_id, other})
    first.begin(source)
    assert progress.text() == "0 of 3 done: fetching GitRepository a/s"
    first.end(source, done=True)
    first.begin(release_id)
    first.end(release_id, done=False)
    assert progress.text() == "1 of 3 done"
    second.begin(source)
    first.begin(release_id)
    first.begin(other)
    assert progress.text() == "1 of 4 done: rendering HelmRelease a/r, building Kustomization a/k and 1 more"
    progress.step = "test 1 of 2"
    first.begin(source)
    assert progress.text().startswith("test 1 of 2: 0 of 4 done: ")


async def test_progress_is_complete_after_a_build(tmp_path: Path) -> None:
    tree = write_tree(
        tmp_path / "tree",
        with_chart({"c/apps.yaml": kustomization("apps", "./apps"), "apps/web.yaml": release("web")}),
    )
    async with (
        open_test_tools(tmp_path) as tools,
        open_orchestrator(Config(tree, OPTIONS, root=tree), tools) as orchestrator,
    ):
        await orchestrator.render()
        (run,) = tools.progress.runs
    assert run.done == run.known
    assert {who.name for who in run.known} == {"apps", "web", "flux-system"}
    assert not run.active
