"""Trees with a defect. The failures that the defect causes are reported with file and line, and everything that the defect does
not affect is built.
"""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.offline.support import built, config_map, failures, kustomization, names, release, with_chart, write_tree

SOUND = {
    "sound/map.yaml": config_map("sound"),
    "sound.yaml": kustomization("sound", "./sound"),
}


@dataclass(frozen=True)
class Broken:
    """One broken tree: its files, a part of the message of each primary failure (``told``), and the number of failures that
    only follow from those (``derived``).
    """

    name: str
    files: dict[str, str]
    told: dict[str, str]
    derived: int = 0
    built: tuple[str, ...] = field(default=("sound",))
    """The ConfigMaps that are built nevertheless."""


_SUBSTITUTE = "  postBuild:\n    substituteFrom:\n      - {{kind: ConfigMap, name: {}}}\n"

CASES = (
    Broken(
        "a typo in dependsOn",
        {
            "web/map.yaml": config_map("web"),
            "ks.yaml": "# a comment\n---\n" + kustomization("web", "./web", depends=("sonud",)),
        },
        {
            "Kustomization web": "ks.yaml:2: Kustomization flux-system/web: spec.dependsOn[0]: Kustomization flux-system/sonud "
            "does not exist; did you mean flux-system/sound?"
        },
    ),
    Broken(
        "a dangling chain fails at its root",
        {
            "web/map.yaml": config_map("web"),
            "ks.yaml": "---\n".join(
                (
                    kustomization("a", "./web", depends=("missing",)),
                    kustomization("b", "./web", depends=("a",)),
                    kustomization("c", "./web", depends=("b",)),
                )
            ),
        },
        {"Kustomization a": "Kustomization flux-system/missing does not exist"},
        derived=2,
    ),
    Broken(
        "a cycle",
        {
            "web/map.yaml": config_map("web"),
            "ks.yaml": kustomization("a", "./web", depends=("b",))
            + "---\n"
            + kustomization("b", "./web", depends=("a",)),
        },
        {
            "Kustomization a": "dependency cycle: Kustomization flux-system/a → Kustomization flux-system/b → "
            "Kustomization flux-system/a",
            "Kustomization b": "dependency cycle: Kustomization flux-system/b → Kustomization flux-system/a → "
            "Kustomization flux-system/b",
        },
    ),
    Broken(
        "a cycle of releases",
        {"hr.yaml": release("a", depends=("b",)) + "---\n" + release("b", depends=("a",))},
        {
            "HelmRelease a": "dependency cycle: HelmRelease apps/a → HelmRelease apps/b → HelmRelease apps/a",
            "HelmRelease b": "dependency cycle: HelmRelease apps/b → HelmRelease apps/a → HelmRelease apps/b",
        },
    ),
    Broken(
        "a cycle that a build brings about",
        {
            "web/map.yaml": config_map("web"),
            "made/ks.yaml": kustomization("a", "./web", depends=("b",))
            + "---\n"
            + kustomization("b", "./web", depends=("a",)),
            "ks.yaml": kustomization("made", "./made") + "---\n" + kustomization("late", "./web", depends=("b",)),
        },
        {
            "Kustomization a": "dependency cycle: Kustomization flux-system/a → Kustomization flux-system/b → K",
            "Kustomization b": "dependency cycle: Kustomization flux-system/b → Kustomization flux-system/a → K",
        },
        derived=1,
    ),
    Broken(
        "two that wait for data of each other",
        {
            # The release waits for values from the Kustomization, and the Kustomization for a variable from the release.
            "late/map.yaml": config_map("values"),
            "ks.yaml": kustomization(
                "late", "./late", "  postBuild:\n    substituteFrom:\n      - {kind: ConfigMap, name: web-web}\n"
            ),
            "hr.yaml": release("web", "  valuesFrom:\n    - {kind: ConfigMap, name: values}\n").replace(
                "namespace: apps", "namespace: flux-system"
            ),
            "late/kustomization.yaml": "resources: [map.yaml]\nnamespace: flux-system\n",
        },
        {
            "Kustomization late": "spec.postBuild.substituteFrom[0]: ConfigMap flux-system/web-web does not exist",
        },
        derived=1,
    ),
    Broken(
        "two that wait for files of each other",
        {
            "a/map.yaml": config_map("of-a", "flux-system"),
            "b/map.yaml": config_map("of-b", "flux-system"),
            "ks.yaml": kustomization("a", "./a", _SUBSTITUTE.format("of-b"))
            + "---\n"
            + kustomization("b", "./b", _SUBSTITUTE.format("of-a")),
        },
        {
            "Kustomization a": "dependency cycle: Kustomization flux-system/a → Kustomization flux-system/b → "
            "Kustomization flux-system/a",
            "Kustomization b": "dependency cycle: Kustomization flux-system/b → Kustomization flux-system/a",
        },
    ),
    Broken(
        "missing values",
        {"hr.yaml": release("web", "  valuesFrom:\n    - {kind: ConfigMap, name: defaults}\n")},
        {
            "HelmRelease web": "hr.yaml:1: HelmRelease apps/web: spec.valuesFrom[0]: ConfigMap apps/defaults does not exist"
        },
    ),
    Broken(
        "a key that is not there",
        {
            "hr.yaml": release("web", "  valuesFrom:\n    - {kind: ConfigMap, name: defaults, valuesKey: more.yaml}\n"),
            "defaults.yaml": config_map("defaults", **{"values.yaml": "text: x"}),
        },
        {"HelmRelease web": "spec.valuesFrom: ConfigMap apps/defaults has no key 'more.yaml'"},
        built=("defaults", "sound"),
    ),
    Broken(
        "invalid YAML in a file that is loaded",
        {"bad.yaml": "kind: ConfigMap\napiVersion: v1\n  metadata: {name: bad}\n"},
        {"File bad.yaml#0": "bad.yaml:3: File bad.yaml#0: not readable YAML"},
    ),
    Broken(
        "invalid YAML in a file that a Kustomization builds",
        {
            "web/bad.yaml": "kind: ConfigMap\napiVersion: v1\n  metadata: {name: bad}\n",
            "ks.yaml": kustomization("web", "./web"),
        },
        {"Kustomization web": "web/bad.yaml:3: Kustomization flux-system/web: web/bad.yaml: not readable YAML"},
    ),
    Broken(
        "a duplicate object",
        {"one.yaml": config_map("twice"), "two.yaml": "# again\n" + config_map("twice")},
        {"File two.yaml#0": "two.yaml:2: File two.yaml#0: ConfigMap apps/twice is declared in one.yaml:1 already"},
        built=("sound", "twice"),
    ),
    Broken(
        "an error of kustomize",
        {"web/kustomization.yaml": "resources: [absent.yaml]\n", "ks.yaml": kustomization("web", "./web")},
        {"Kustomization web": "absent.yaml"},
    ),
    Broken(
        "a folder that does not exist",
        {"ks.yaml": kustomization("web", "./nowhere")},
        {"Kustomization web": "spec.path: GitRepository flux-system/flux-system has no folder './nowhere'"},
    ),
    Broken(
        "a path that leaves the tree",
        {"ks.yaml": kustomization("web", "../elsewhere")},
        {"Kustomization web": "spec.path: '../elsewhere' leads out of the source"},
    ),
    Broken(
        "a chart that does not exist",
        {"hr.yaml": release("web", chart="./charts/wbe")},
        {"HelmRelease web": "GitRepository flux-system/flux-system has no chart at './charts/wbe'"},
    ),
    Broken(
        "a chart that refuses its values",
        {
            "hr.yaml": release("web", "  values: {text: x}\n", chart="./charts/strict"),
            "charts/strict/Chart.yaml": "apiVersion: v2\nname: strict\nversion: 1.0.0\n",
            "charts/strict/values.schema.json": '{"properties": {"text": {"type": "integer"}}}',
            "charts/strict/templates/map.yaml": config_map("strict"),
        },
        {"HelmRelease web": "got string, want integer"},
    ),
    Broken(
        "a template that fails",
        {
            "hr.yaml": release("web", chart="./charts/bad"),
            "charts/bad/Chart.yaml": "apiVersion: v2\nname: bad\nversion: 1.0.0\n",
            "charts/bad/templates/map.yaml": "x: y\nz: {{ fail `on purpose` }}\n",
        },
        {"HelmRelease web": "on purpose"},
    ),
    Broken(
        "a source without a fetcher",
        {
            "bucket.yaml": "apiVersion: source.toolkit.fluxcd.io/v1\nkind: Bucket\n"
            "metadata: {name: bin, namespace: flux-system}\nspec: {bucketName: x}\n",
            "ks.yaml": kustomization("web", "./web").replace("GitRepository, name: flux-system", "Bucket, name: bin"),
        },
        {"Bucket bin": "bucket.yaml:1: Bucket flux-system/bin: there is no fetcher for a Bucket; give one"},
        derived=1,
    ),
    Broken(
        "a source that needs the network",
        {
            "git.yaml": "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\n"
            "metadata: {name: far, namespace: flux-system}\nspec: {url: https://git.example.com/a/b}\n",
            "ks.yaml": kustomization("web", "./web").replace("name: flux-system}\n", "name: far}\n"),
        },
        {"GitRepository far": "https://git.example.com/a/b: the network is forbidden by --offline"},
        derived=1,
    ),
    Broken(
        "an expression that cannot be read",
        {
            "web/map.yaml": config_map("web", text="${1bad}"),
            "ks.yaml": kustomization("web", "./web", "  postBuild: {substitute: {a: b}}\n"),
        },
        {"Kustomization web": "spec.postBuild: ${1bad} is not a valid variable"},
    ),
    Broken(
        "a file that nothing builds",
        {
            "web/kustomization.yaml": "resources: [map.yaml]\n",
            "web/map.yaml": config_map("web"),
            "web/repository.yaml": "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\n"
            "metadata: {name: charts, namespace: apps}\nspec: {url: https://charts.example.com}\n",
            "ks.yaml": kustomization("web", "./web"),
            "hr.yaml": release("shop", chart="web").replace(
                "{kind: GitRepository, name: flux-system, namespace: flux-system}",
                "{kind: HelmRepository, name: charts}",
            ),
        },
        {
            "HelmRelease shop": "HelmRepository apps/charts does not exist: web/repository.yaml:1 declares it, but nothing builds"
        },
        built=("sound", "web"),
    ),
    Broken(
        "a release that names itself",
        {"hr.yaml": release("web", depends=("web",))},
        {"HelmRelease web": "spec.dependsOn[0] names HelmRelease apps/web itself"},
    ),
    Broken(
        "a package that needs the network",
        {
            "app.yaml": "apiVersion: wharfinger.dev/v1alpha1\nkind: Application\nmetadata: {name: shop, namespace: apps}\n"
            "spec: {packageName: web, packageVersion: 1.0.0}\n",
            "repository.yaml": "apiVersion: wharfinger.dev/v1alpha1\nkind: PackageRepository\nmetadata: {name: default}\n"
            "spec: {registry: {repo: registry.example.com/packages}}\n",
        },
        {
            "Application shop": "the network is forbidden by --offline, and https://registry.example.com/packages is not on this "
            "machine"
        },
    ),
    Broken(
        "a name that is no text",
        {"bad.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yes}\n"},
        {
            "File bad.yaml#0": "bad.yaml:1: File bad.yaml#0: ConfigMap: metadata.name: expected a string, found a boolean"
        },
    ),
    Broken(
        "a spec of another shape",
        {"ks.yaml": kustomization("web", "[a]"), "hr.yaml": release("web", chart="[a]")},
        {
            "Kustomization web": "ks.yaml:1: Kustomization flux-system/web: path: expected a string, found a list",
            "HelmRelease web": "chart: expected a string, found a list",
        },
    ),
    Broken(
        "a package that is not there",
        {
            "app.yaml": "apiVersion: wharfinger.dev/v1alpha1\nkind: Application\nmetadata: {name: shop, namespace: apps}\n"
            "spec: {packageName: web, packageVersion: 1.0.0}\n"
        },
        {
            "Application shop": "app.yaml:1: Application apps/shop: spec.packageRepositoryName: PackageRepository default"
        },
    ),
)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
async def test_failures_of_a_broken_tree_are_reported_and_the_rest_is_built(case: Broken, tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", with_chart({**SOUND, **case.files}))
    result = await built(tree, tmp_path)
    found = failures(result)
    assert found.keys() == case.told.keys(), found
    for who, message in case.told.items():
        assert message in found[who]
    assert len(result.blocked) == case.derived
    assert set(names(result)) == set(case.built)
    assert all(each.place is not None for each in result.failed.values())


@pytest.mark.sampled
@pytest.mark.parametrize("case", CASES[:3], ids=lambda case: case.name.replace(" ", "-"))
async def test_verdicts_do_not_depend_on_order_or_workers(case: Broken, tmp_path: Path) -> None:
    files = with_chart({**SOUND, **case.files})
    found = []
    for number, workers in enumerate((1, 2, 4)):
        order = sorted(files, reverse=bool(number % 2))
        tree = write_tree(tmp_path / str(number), {name: files[name] for name in order})
        result = await built(tree, tmp_path, concurrency=workers)
        found.append((failures(result), sorted(result.blocked), names(result)))
    assert found[0] == found[1] == found[2]
