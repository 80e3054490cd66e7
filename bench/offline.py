"""An offline build of a tree of Flux objects with 100 releases, against 100 ``helm template`` processes.

Repeated builds of the tree are compared with the first build, which has an empty cache, or with a build without changes.

Unless a row says otherwise, the figures are processor times of this process and of its children: helm, kubectl and the chart
engine.
"""

import gc
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Final

import trio

from bench.measure import Ratio, Unit
from tests.offline.support import kustomization, release, with_chart, write_tree
from wharfinger.offline.building_command import few_collections
from wharfinger.offline.controllers.controller import RunOptions
from wharfinger.offline.orchestrator.orchestrator import Config, open_orchestrator
from wharfinger.offline.orchestrator.result import Result
from wharfinger.offline.orchestrator.toolbox import ToolOptions, find_program, open_tools
from wharfinger.packages.rendering.helm_command import KUBE_VERSION

RELEASES: Final = 100
GROUPS: Final = 10
RUNS: Final = 3
LARGE: Final = 1_000
PART: Final = "offline"
ENGINE: Final = Path(__file__).resolve().parent.parent / ".cache" / "tools" / "engine" / "wharfinger-engine"


def measure(long: bool) -> Iterator[Ratio]:
    """Measure builds: with an empty cache, without changes, after a change of one file, and with a dependency that does not
    exist.

    With ``long``, also measure the memory for 1,000 releases.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        tree, cache = _tree(place / "tree", RELEASES), place / "cache-0"
        helm = _processor_time(lambda: _helm(tree))  # One measurement is enough, because it covers a hundred processes.
        cold = _median(lambda number: _processor_time(lambda: _build(tree, place / f"cache-{number}")))
        warm = _median(lambda _: _processor_time(lambda: _build(tree, cache)))
        changes = [_change(tree, cache, number) for number in range(RUNS)]
        changed = median(each for each, _ in changes)
        write_tree(tree, {"clusters/p/wrong.yaml": kustomization("wrong", "./groups/g0", depends=("absent",))})
        again = _median(lambda _: _processor_time(lambda: _build(tree, cache)))
        yield Ratio(PART, f"cold build of {RELEASES} releases", "helm template for each, alone", cold, helm, 0.25)
        yield Ratio(PART, "warm build", "the cold build", warm, cold, 0.1)
        yield Ratio(PART, "build after a change of one file", "the cold build", changed, cold, 0.15)
        yield Ratio(
            PART, "build after a change of one file, by the clock", "0.3 s", median(each for _, each in changes), 0.3, 1
        )
        yield Ratio(PART, "build with a dangling dependency", "the warm build", again, warm, 1.5)
        if long:
            large = _tree(place / "large", LARGE)
            small = _memory(tree, place / "cache")
            yield Ratio(
                PART,
                f"memory of {LARGE} releases",
                f"memory of {RELEASES} releases",
                _memory(large, place / "cache"),
                small,
                2.5,
                Unit.BYTES,
            )


def _tree(folder: Path, releases: int) -> Path:
    """Write a tree with ``releases`` releases of one chart, divided among ten Kustomizations."""
    files = {
        f"apps/a{number}/release.yaml": release(f"app-{number}", f"  values: {{text: app {number}}}\n")
        for number in range(releases)
    }
    for group in range(GROUPS):
        listed = "".join(f"- ../../apps/a{number}/release.yaml\n" for number in range(group, releases, GROUPS))
        files[f"groups/g{group}/kustomization.yaml"] = f"resources:\n{listed}"
        files[f"clusters/p/g{group}.yaml"] = kustomization(f"g{group}", f"./groups/g{group}")
    return write_tree(folder, with_chart(files))


def _options(cache: Path) -> ToolOptions:
    helm, kubectl = find_program("helm"), find_program("kubectl")
    if helm is None or kubectl is None:
        raise RuntimeError("helm or kubectl is not on PATH; run `make setup`")
    return ToolOptions(helm, kubectl, cache, engine=ENGINE if ENGINE.exists() else None, network=False)


def _build(tree: Path, cache: Path) -> None:
    with few_collections():  # Offline commands run in the same way.
        result = trio.run(_built, tree, cache)
    primary = [each for each in result.failed.values() if "absent" not in each.message]
    if primary:
        raise RuntimeError(f"the tree could not be built: {primary[0]}")


async def _built(tree: Path, cache: Path) -> Result:
    config = Config(tree / "clusters" / "p", RunOptions(KUBE_VERSION), root=tree)
    async with open_tools(_options(cache)) as tools, open_orchestrator(config, tools) as orchestrator:
        return await orchestrator.render()


def _helm(tree: Path) -> None:
    for number in range(RELEASES):
        command = ["helm", "template", f"app-{number}", str(tree / "charts" / "web"), f"--set=text=app {number}"]
        subprocess.run(command, check=True, capture_output=True)


def _change(tree: Path, cache: Path, number: int) -> tuple[float, float]:
    """Change one file, build the tree, and return the build's processor time and its duration."""
    (tree / f"apps/a{number}/release.yaml").write_text(release(f"app-{number}", "  values: {text: another}\n"))
    begin = time.perf_counter()
    used = _processor_time(lambda: _build(tree, cache))
    return used, time.perf_counter() - begin


def _median(measured: Callable[[int], float]) -> float:
    return median(measured(number) for number in range(RUNS))


def _processor_time(work: Callable[[], None]) -> float:
    gc.collect()  # Garbage of earlier builds in this process must not count.
    before = _used()
    work()
    return _used() - before


def _used() -> float:
    """Return the processor time of this process and of its ended children, with a resolution of microseconds."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in both)


def _memory(tree: Path, cache: Path) -> float:
    """Return the peak memory of a new process that builds a tree."""
    program = (
        "import resource, sys; from pathlib import Path; from bench.offline import _build; "
        "_build(Path(sys.argv[1]), Path(sys.argv[2])); print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)"
    )
    python = shutil.which("python") or "python"
    done = subprocess.run([python, "-c", program, str(tree), str(cache)], check=True, capture_output=True, text=True)
    return float(done.stdout)
