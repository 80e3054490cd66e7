"""Builds by the chart engine. Their output equals that of kubectl byte for byte, and they are cached."""

import os
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from tests.offline.support import config_map, write_tree
from tests.packages.kustomizing.kustomize_contract import CONTRACT, Check
from tests.packages.rendering.test_chart_engine import LIMITS, engine_program
from tests.packages.support.charts import tool
from wharfinger.formats.json.value import JsonObject
from wharfinger.packages.kustomizing.build_cache import BuildCache
from wharfinger.packages.kustomizing.engine_kustomize import EngineKustomize
from wharfinger.packages.kustomizing.kustomization import Folder, Kustomization, Manifests, Overlay
from wharfinger.packages.kustomizing.kustomize import KubectlKustomize, KustomizeBuilder, KustomizeError
from wharfinger.packages.rendering.chart_engine import (
    ChartEngine,
    EngineLimits,
    EngineResult,
    FolderBuild,
    open_chart_engine,
)
from wharfinger.packages.rendering.entry_cache import EntryCache
from wharfinger.packages.rendering.program_versions import ProgramVersions

pytestmark = pytest.mark.slow

DEPLOYMENT: Final = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - {name: web, image: "registry.test/web:1", envFrom: [{configMapRef: {name: settings}}]}
        - {name: side, image: side}
"""
SERVICE: Final = (
    "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n"
)
BASE: Final = {"a/web.yaml": DEPLOYMENT, "a/service.yaml": SERVICE}
RESOURCES: Final = "resources: [web.yaml, service.yaml]\n"
OWN_SCHEMA: Final = (
    '{"definitions": {"io.k8s.api.apps.v1.Deployment": {"type": "object", "x-kubernetes-group-version-kind": '
    '[{"group": "apps", "kind": "Deployment", "version": "v1"}]}}}'
)
GOOD: Final[Mapping[str, Mapping[str, str]]] = {
    "resources": {**BASE, "a/kustomization.yaml": RESOURCES},
    "its own schema": {
        **BASE,
        "a/kustomization.yaml": RESOURCES + "openapi: {path: schema.json}\npatches: [{path: p.yaml}]\n",
        "a/schema.json": OWN_SCHEMA,
        "a/p.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
        "spec: {template: {spec: {containers: [{name: web, image: new}]}}}\n",
    },
    "a strategic merge patch": {
        **BASE,
        "a/kustomization.yaml": RESOURCES + "patches: [{path: p.yaml}]\n",
        "a/p.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
        "spec: {template: {spec: {containers: [{name: web, image: new}, {name: side, $patch: delete}]}}}\n",
    },
    "a JSON patch": {
        **BASE,
        "a/kustomization.yaml": RESOURCES + "patches:\n- target: {kind: Deployment}\n  patch: |\n"
        "    - {op: replace, path: /spec/replicas, value: 3}\n    - {op: add, path: /metadata/annotations, value: {a: 'yes'}}\n",
    },
    "names, namespace, labels": {
        **BASE,
        "a/kustomization.yaml": RESOURCES + "namePrefix: p-\nnameSuffix: -s\nnamespace: prod\n"
        "labels: [{pairs: {team: a}, includeSelectors: true}]\ncommonAnnotations: {a: '1', b: \"true\"}\n",
    },
    "old labels": {**BASE, "a/kustomization.yaml": RESOURCES + "commonLabels: {team: a}\n"},
    "images and replicas": {
        **BASE,
        "a/kustomization.yaml": RESOURCES + "images: [{name: registry.test/web, newName: other/web, newTag: '2'}, "
        "{name: side, digest: 'sha256:abc'}]\nreplicas: [{name: web, count: 5}]\n",
    },
    "generators": {
        **BASE,
        "a/kustomization.yaml": RESOURCES
        + "configMapGenerator:\n- {name: settings, literals: [a=b, 'c=d e'], files: [x.txt, "
        "k=x.txt], envs: [e.env]}\nsecretGenerator: [{name: s, literals: [p=q], type: Opaque}]\n"
        "generatorOptions: {labels: {made: 'yes'}, disableNameSuffixHash: false}\n",
        "a/x.txt": "one\ntwo\n",
        "a/e.env": "E=1\n# no\nF=two words\n",
    },
    "components": {
        **BASE,
        "a/kustomization.yaml": RESOURCES + "components: [../c]\n",
        "c/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
        "patches:\n- target: {kind: Service}\n  patch: |\n    - {op: add, path: /spec/type, value: NodePort}\n",
    },
    "replacements": {
        **BASE,
        "a/kustomization.yaml": RESOURCES + "replacements:\n- source: {kind: Service, fieldPath: 'spec.ports.0.port'}\n"
        "  targets: [{select: {kind: Deployment}, fieldPaths: [spec.replicas]}]\n",
    },
    "bases over bases": {
        "base/kustomization.yaml": "resources: [web.yaml]\nnameSuffix: -base\n",
        "base/web.yaml": DEPLOYMENT,
        "b/kustomization.yml": "resources: [../base]\nnamePrefix: b-\n",
        "a/Kustomization": "resources: [../b]\nnamespace: top\n",
    },
    "marks of origin": {
        **BASE,
        "a/kustomization.yaml": RESOURCES + "buildMetadata: [managedByLabel, originAnnotations]\n",
    },
    "sorted": {**BASE, "a/kustomization.yaml": RESOURCES + "sortOptions: {order: legacy}\n"},
    "a list and anchors": {
        "a/kustomization.yaml": "resources: [list.yaml, anchors.yaml]\n",
        "a/list.yaml": "apiVersion: v1\nkind: List\nitems:\n"
        "- {apiVersion: v1, kind: ConfigMap, metadata: {name: l}, data: {n: '007', o: 'off'}}\n",
        "a/anchors.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: anchors}\ndata:\n  x: &x |\n    text\n\n  y: *x\n",
    },
    "nothing": {"a/kustomization.yaml": "namespace: x\nconfigMapGenerator: []\nresources: []\nnamePrefix: a-\n"},
}
WRONG: Final[Mapping[str, Mapping[str, str]]] = {
    "a missing file": {"a/kustomization.yaml": "resources: [absent.yaml]\n"},
    "a missing base": {"a/kustomization.yaml": "resources: [../absent]\n"},
    "a cycle": {"a/kustomization.yaml": "resources: [../b]\n", "b/kustomization.yaml": "resources: [../a]\n"},
    "itself": {"a/kustomization.yaml": "resources: [.]\n"},
    "no kustomization": {"a/web.yaml": DEPLOYMENT},
    "no YAML": {"a/kustomization.yaml": "resources: [x.yaml]\n", "a/x.yaml": "a: [b\n"},
    "no YAML in the kustomization": {"a/kustomization.yaml": "resources: [b\n"},
    "an unknown field": {"a/kustomization.yaml": "resource: [b]\n"},
    "no object": {"a/kustomization.yaml": "resources: [x.yaml]\n", "a/x.yaml": "just: data\n"},
    "the same object twice": {
        "a/kustomization.yaml": "resources: [x.yaml, y.yaml]\n",
        "a/x.yaml": SERVICE,
        "a/y.yaml": SERVICE,
    },
    "a patch without a target": {
        **BASE,
        "a/kustomization.yaml": RESOURCES + "patches: [{path: p.yaml}]\n",
        "a/p.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: absent}\n",
    },
    "a file outside of the root": {"a/kustomization.yaml": "resources: [../b/x.yaml]\n", "b/x.yaml": SERVICE},
    "an absolute path": {"a/kustomization.yaml": "resources: [/b]\n"},
    "a chart": {"a/kustomization.yaml": "helmCharts: [{name: x, repo: 'https://127.0.0.1:9', version: 1.0.0}]\n"},
    "a program": {
        "a/kustomization.yaml": "transformers: [t.yaml]\n",
        "a/t.yaml": "apiVersion: x/v1\nkind: X\nmetadata:\n  name: t\n  annotations:\n"
        "    config.kubernetes.io/function: |\n      exec: {path: ./run.sh}\n",
    },
    "a schema that is none": {**BASE, "a/kustomization.yaml": RESOURCES + "openapi: {version: v9}\n"},
}


@pytest.fixture(scope="module", autouse=True)
def same_version() -> None:
    """Skip the tests if kubectl and the engine have different versions of kustomize; in CI, fail them."""
    told = subprocess.run([engine_program(), "--version"], capture_output=True, text=True, check=True).stdout
    said = subprocess.run([tool("kubectl"), "version", "--client"], capture_output=True, text=True, check=True).stdout
    if told.splitlines()[1].split()[-1] not in said.split():
        if os.environ.get("CI"):
            pytest.fail(f"engine/go.mod has another kustomize than kubectl: {told}{said}")
        pytest.skip(f"this kubectl has another kustomize: {told}{said}")


def by_program(folder: Path, *, unrestricted: bool) -> tuple[int, bytes, bytes]:
    """Return the exit code, the output and the error message of ``kubectl kustomize``."""
    more = ["--load-restrictor", "LoadRestrictionsNone"] if unrestricted else []
    done = subprocess.run([tool("kubectl"), "kustomize", *more, folder], capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr[done.stderr.find(b"error: ") :] if done.returncode else b""


@asynccontextmanager
async def opened(
    tmp_path: Path, program: Path | None = None, limits: EngineLimits = LIMITS
) -> AsyncIterator[ChartEngine]:
    folder = tmp_path / "engine"
    folder.mkdir(exist_ok=True)
    async with open_chart_engine(program or engine_program(), folder, None, limits) as engine:
        yield engine


async def by_engine(engine: ChartEngine, folder: Path, *, unrestricted: bool) -> tuple[int, bytes, bytes]:
    outcome = (await engine.kustomize(FolderBuild(folder, unrestricted=unrestricted))).outcome
    return outcome.returncode, outcome.stdout, outcome.stderr if outcome.returncode else b""


@pytest.mark.unmeasured
@pytest.mark.parametrize("unrestricted", [True, False])
async def test_the_engine_builds_the_same_bytes_as_kubectl(tmp_path: Path, *, unrestricted: bool) -> None:
    """One worker of the engine builds all trees, and those in ``GOOD`` twice, to show that no build affects the next one."""
    async with opened(tmp_path) as engine:
        for number, (name, files) in enumerate([*GOOD.items(), *WRONG.items()]):
            folder = write_tree(tmp_path.resolve() / str(number), files) / "a"
            wanted = by_program(folder, unrestricted=unrestricted)
            assert await by_engine(engine, folder, unrestricted=unrestricted) == wanted, name
            assert (wanted[0] == 0) == (name in GOOD or (unrestricted and name == "a file outside of the root")), name
        for number, (name, files) in enumerate(GOOD.items()):
            folder = tmp_path.resolve() / str(number) / "a"
            assert await by_engine(engine, folder, unrestricted=True) == by_program(folder, unrestricted=True), name
            assert files


class Builders:
    """The two builders of one test. The results of ``engine`` are cached in ``entries``."""

    def __init__(self, engine: ChartEngine, scratch: Path) -> None:
        self.entries = EntryCache(scratch / "renders")
        self.kubectl = KubectlKustomize(tool("kubectl"), scratch, network=False)
        self.engine = EngineKustomize(engine, self.kubectl, ProgramVersions(self.entries), BuildCache(self.entries))


@asynccontextmanager
async def builders(tmp_path: Path) -> AsyncIterator[Builders]:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    async with opened(tmp_path) as engine:
        yield Builders(engine, scratch)


async def outcome(builder: KustomizeBuilder, what: Kustomization) -> tuple[JsonObject, ...] | str:
    try:
        return await builder.build(what)
    except KustomizeError as error:
        return f"{error}, transient: {error.transient}"


async def test_both_builders_give_the_same_objects_and_messages(tmp_path: Path) -> None:
    fields: JsonObject = {"namePrefix": "x-", "components": ["../c"]}
    write_tree(
        tmp_path,
        {
            **GOOD["components"],
            "c/deep/a.yaml": SERVICE,
            "wrong/a.yaml": "a: [b\n",
            "remote/kustomization.yaml": "resources: ['https://127.0.0.1:9/x.yaml']\n",
        },
    )
    asked: list[Kustomization] = [
        Folder(tmp_path / "a", "apps/a"),
        Overlay(tmp_path / "a", "apps/a", (".",), fields),
        Overlay(tmp_path / "c", "apps/c", ("deep/a.yaml",), {"namespace": "x"}),
        Overlay(tmp_path / "c", "apps/c", ("deep/absent.yaml",), {}),
        Overlay(tmp_path / "wrong", "wrong", ("a.yaml",), {}),
        Overlay(tmp_path / "a", "apps/a", (".",), {"components": ["../absent"]}),
        Folder(tmp_path / "remote", "remote"),
        Manifests("postRenderers", SERVICE, {"images": [{"name": "a", "newTag": "1"}]}),
        Manifests("postRenderers", "a: b\n", {}),
    ]
    async with builders(tmp_path) as both:
        for what in asked:
            wanted = await outcome(both.kubectl, what)
            for _ in range(2):  # The second result comes from the cache.
                assert await outcome(both.engine, what) == wanted, what


@pytest.mark.parametrize("check", CONTRACT)
async def test_the_engine_fulfils_the_builder_contract(check: Check, tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    async with builders(tmp_path) as both:
        await check(both.engine, folder)
        if any(folder.iterdir()):
            await check(both.engine, folder)


async def test_a_file_changed_during_the_build_is_built_again(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "a", {"kustomization.yaml": "resources: [m.yaml]\n", "m.yaml": config_map("old")})
    counting = Counting(tmp_path, after=lambda: (tree / "m.yaml").write_text(config_map("new")))
    async with counting.opened() as build:
        assert "old" in str(await build(Folder(tree, "a")))
        assert "new" in str(await build(Folder(tree, "a")))
        assert counting.builds() == 2


@pytest.mark.parametrize(
    ("body", "limits", "says", "transient"),
    [
        ("exec sleep 60", replace(LIMITS, wall_s=0.3), "took longer than 0.3 s", True),
        ("echo no memory >&2; kill -9 $$", LIMITS, "no memory", True),
        ("echo broken >&2; exit 3", LIMITS, "broken", False),
        ("printf '\\000\\000\\000\\002{]'; exec sleep 60", LIMITS, "cannot be read", False),
    ],
)
async def test_a_failed_engine_worker_fails_only_one_build(
    tmp_path: Path, body: str, limits: EngineLimits, says: str, *, transient: bool
) -> None:
    tree = write_tree(tmp_path / "a", {"kustomization.yaml": "resources: [m.yaml]\n", "m.yaml": config_map("m")})
    program = tmp_path / "engine.sh"
    once = f"if mkdir {tmp_path}/failed 2>/dev/null; then {body}; fi"
    real = engine_program()
    program.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then exec {real} --version; fi\n{once}\nexec {real}\n')
    program.chmod(0o755)
    (tmp_path / "scratch").mkdir()
    async with opened(tmp_path, program, limits) as engine:
        builder = Builders(engine, tmp_path / "scratch").engine
        with pytest.raises(KustomizeError, match=says) as caught:
            await builder.build(Folder(tree, "a"))
        assert caught.value.transient is transient
        assert len(await builder.build(Folder(tree, "a"))) == 1


async def test_unchanged_folders_are_not_built_again(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", {**BASE, "a/kustomization.yaml": "resources: [web.yaml, ../b]\n"})
    write_tree(tree, {"b/kustomization.yaml": "resources: [map.yaml]\n", "b/map.yaml": config_map("m")})
    counting = Counting(tmp_path)
    async with counting.opened() as build:
        first = await build(Folder(tree / "a", "a"))
        assert (await build(Folder(tree / "a", "a")), counting.builds()) == (first, 1)
        (tree / "b" / "map.yaml").write_text(config_map("n"))
        second = await build(Folder(tree / "a", "a"))
        assert (second != first, counting.builds()) == (True, 2)
        (tree / "b" / "map.yaml").write_text(config_map("m"))
        assert (await build(Folder(tree / "a", "a")), counting.builds()) == (first, 2)
        (tree / "b" / "kustomization.yml").write_text("resources: []\n")  # The folder now has two kustomization files.
        with pytest.raises(KustomizeError, match="multiple kustomization files"):
            await build(Folder(tree / "a", "a"))
        (tree / "b" / "kustomization.yml").unlink()
        (tree / "b" / "map.yaml").unlink()
        with pytest.raises(KustomizeError, match=r"map\.yaml"):
            await build(Folder(tree / "a", "a"))
    elsewhere = (tree).rename(tmp_path / "elsewhere")
    (elsewhere / "b" / "map.yaml").write_text(config_map("m"))
    async with counting.opened() as build:
        builds = counting.builds()
        assert (await build(Folder(elsewhere / "a", "a")), counting.builds()) == (first, builds)


async def test_folders_with_equal_names_have_separate_cache_entries(tmp_path: Path) -> None:
    counting = Counting(tmp_path)
    folders = [
        write_tree(tmp_path / str(n), {"kustomization.yaml": "resources: [m.yaml]\n", "m.yaml": config_map(f"m{n}")})
        for n in range(3)
    ]
    async with counting.opened() as build:
        built = [await build(Folder(each, ".")) for each in folders]
        assert len({str(each) for each in built}) == len(folders)
        assert [await build(Folder(each, ".")) for each in folders] == built
        assert counting.builds() == len(folders)


@pytest.mark.parametrize("harm", [b"", b"x"])
async def test_a_damaged_entry_is_built_again(tmp_path: Path, harm: bytes) -> None:
    tree = write_tree(tmp_path / "a", {"kustomization.yaml": "resources: [m.yaml]\n", "m.yaml": config_map("m")})
    counting = Counting(tmp_path)
    async with counting.opened() as build:
        first = await build(Folder(tree, "a"))
    for path in (tmp_path / "scratch" / "renders").iterdir():
        path.write_bytes(harm and path.read_bytes()[:-1] + harm)
    async with counting.opened() as build:
        assert await build(Folder(tree, "a")) == first
        assert counting.builds() == 2


Build: TypeAlias = Callable[[Kustomization], Awaitable[tuple[JsonObject, ...]]]


class Counting:
    """The real engine with a counter of its builds; ``after`` is called after each build."""

    def __init__(self, tmp_path: Path, after: Callable[[], object] = lambda: None) -> None:
        self._folder = tmp_path
        self._after = after
        self._seen = 0
        (tmp_path / "scratch").mkdir()

    def builds(self) -> int:
        """Return the number of builds by the engine so far."""
        return self._seen

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Build]:
        async with opened(self._folder) as engine:
            whole = engine.kustomize

            async def counted(asked: FolderBuild) -> EngineResult:
                self._seen += 1
                result = await whole(asked)
                self._after()
                return result

            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(engine, "kustomize", counted)
                yield Builders(engine, self._folder / "scratch").engine.build


async def test_a_kubectl_with_another_kustomize_version_builds_instead_of_the_engine(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "a", {"kustomization.yaml": "resources: [m.yaml]\n", "m.yaml": config_map("m")})
    old = tmp_path / "kubectl.sh"
    old.write_text(
        '#!/bin/sh\nif [ "$1" = version ]; then echo \'{"kustomizeVersion": "v5.0.0"}\'; exit; fi\n'
        "echo '{apiVersion: v1, kind: ConfigMap, metadata: {name: by-the-program}}'\n"
    )
    old.chmod(0o755)
    async with opened(tmp_path) as engine:
        entries = EntryCache(tmp_path / "renders")
        kubectl = KubectlKustomize(old, tmp_path)
        builder = EngineKustomize(engine, kubectl, ProgramVersions(entries), BuildCache(entries))
        assert await builder.build(Folder(tree, "a")) == await kubectl.build(Folder(tree, "a"))
