"""Hostile trees. Their effect on a build is limited, the output contains no file from outside of the tree, and all parts of the
tree that are not hostile are built.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.offline.support import built, config_map, failures, kustomization, names, release, with_chart, write_tree
from wharfinger.offline.discovery.tree import MAX_FILE

SOUND = {"sound/map.yaml": config_map("sound"), "sound.yaml": kustomization("sound", "./sound")}
_LEVELS = "".join(
    f"  {chr(98 + level)}: &{chr(98 + level)} [{', '.join(9 * ['*' + chr(97 + level)])}]\n" for level in range(8)
)
BOMB = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: bomb}}\ndata:\n  a: &a [x]\n{_LEVELS}"
APPLICATION = (
    "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd}}\n"
    "spec: {{source: {{repoURL: 'https://git.example.com/a/fleet', path: {path}}}, destination: {{namespace: apps}}}}\n"
)
SOURCE = (
    "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: flux-system, namespace: flux-system}\n"
    "spec: {url: 'https://git.example.com/a/fleet'}\n---\n" + kustomization("root", "./flux")
)


def nothing(_tree: Path) -> None:
    """Do nothing, because the files of the tree are sufficient."""


def pipes(tree: Path) -> None:
    for name in ("pipe.yaml", "apps/pipe.yaml", "apps/Chart.yaml", "sound/kustomization.yaml"):
        os.mkfifo(tree / name)


def sparse(tree: Path) -> None:
    with (tree / "apps" / "large.yaml").open("wb") as file:
        file.truncate(5 << 30)


def sparse_kustomization(tree: Path) -> None:
    with (tree / "apps" / "kustomization.yaml").open("wb") as file:
        file.truncate(5 << 30)


def leaking_link(tree: Path) -> None:
    (tree / "apps" / "leak.yaml").symlink_to(tree.parent / "secret.yaml")


def leaking_chart(tree: Path) -> None:
    (tree / "charts" / "web" / "leak").symlink_to(tree.parent / "secret.yaml")


@dataclass(frozen=True)
class Hostile:
    """One hostile tree: its files, a function that adds what a text cannot express (such as pipes and links), and a part of the
    message of each primary failure (``told``).
    """

    name: str
    files: dict[str, str]
    told: dict[str, str]
    prepare: Callable[[Path], None] = nothing
    built: tuple[str, ...] = field(default=("sound",))


CASES = (
    Hostile(
        "aliases that grow, in a file that is built",
        {"apps/bomb.yaml": BOMB, "ks.yaml": kustomization("apps", "./apps")},
        {"Kustomization apps": "apps/bomb.yaml: not readable YAML: line"},
    ),
    Hostile(
        "pipes in the place of files",
        {"apps/map.yaml": config_map("web"), "ks.yaml": kustomization("apps", "./apps")},
        {},
        pipes,
        built=("sound", "web"),
    ),
    Hostile(
        "a file of 5 GiB",
        {"apps/map.yaml": config_map("web"), "ks.yaml": kustomization("apps", "./apps")},
        {
            "Kustomization apps": f"apps/large.yaml: Kustomization flux-system/apps: apps/large.yaml: more than {MAX_FILE} bytes"
        },
        sparse,
    ),
    Hostile(
        "a kustomization of 5 GiB",
        {"apps/map.yaml": config_map("web"), "ks.yaml": kustomization("apps", "./apps")},
        {"Kustomization apps": "apps/kustomization.yaml: cannot be checked: kustomization.yaml: 4194305 bytes is over"},
        sparse_kustomization,
    ),
    Hostile(
        "a file outside of the tree, by its path",
        {"apps/kustomization.yaml": "resources: [../../secret.yaml]\n", "ks.yaml": kustomization("apps", "./apps")},
        {"Kustomization apps": "apps/kustomization.yaml: names '../../secret.yaml', which lies outside of the source"},
    ),
    Hostile(
        "a file outside of the tree, as data",
        {
            "apps/kustomization.yaml": "configMapGenerator: [{name: x, files: [../../secret.yaml]}]\n",
            "ks.yaml": kustomization("apps", "./apps"),
        },
        {"Kustomization apps": "which lies outside of the source"},
    ),
    Hostile(
        "a file outside of the tree, by a link",
        {"apps/kustomization.yaml": "resources: [leak.yaml]\n", "ks.yaml": kustomization("apps", "./apps")},
        {"Kustomization apps": "names 'leak.yaml', which lies outside of the source"},
        leaking_link,
    ),
    Hostile(
        "a component outside of the tree",
        {
            "apps/map.yaml": config_map("web"),
            "ks.yaml": kustomization("apps", "./apps", "  components: [../../more]\n"),
        },
        {"Kustomization apps": "names '../../more', which lies outside of the source"},
    ),
    Hostile(
        "a folder that nothing builds, and a file outside",
        {
            "apps/kustomization.yaml": "resources: [../../secret.yaml]\n",
            "apps/ks.yaml": kustomization("in-use", "./sound"),
        },
        {"Folder apps": "which lies outside of the source"},
    ),
    Hostile(
        "a chart with a link out of the tree",
        {"hr.yaml": release("web")},
        {"HelmRelease web": "spec.chart.spec.chart: ./charts/web: leak is a link that leads out of the source"},
        leaking_chart,
    ),
    Hostile(
        "an application of a chart with a link out of the tree",
        {"flux/source.yaml": SOURCE, "argo.yaml": APPLICATION.format(name="web", path="charts/web")},
        {"Application web": "spec.source: path: charts/web: leak is a link that leads out of the source"},
        leaking_chart,
    ),
    Hostile(
        "an application of a kustomization with a file outside",
        {
            "flux/source.yaml": SOURCE,
            "argo.yaml": APPLICATION.format(name="web", path="apps"),
            "apps/kustomization.yaml": "resources: [../../secret.yaml]\n",
        },
        {"Application web": "which lies outside of the source"},
    ),
    Hostile(
        "paths with a NUL, and paths that are too long",
        {
            "ks.yaml": "---\n".join(
                (
                    kustomization("nul", '"a\\0b"'),
                    kustomization("long", "a" * 5000),
                    kustomization("key", "./sound", '  postBuild: {substitute: {"a\\0": b}}\n'),
                )
            ),
            "hr.yaml": release("nul", chart='"a\\0b"'),
        },
        {
            "Kustomization nul": "a text has a NUL character",
            "Kustomization key": "a text has a NUL character",
            "Kustomization long": "aaa…: cannot be read: File name too long",
            "HelmRelease nul": "a text has a NUL character",
        },
    ),
    Hostile(
        "variables that grow",
        {
            "apps/map.yaml": config_map("web", text="${a}" * 2000),
            "ks.yaml": kustomization("apps", "./apps", f"  postBuild: {{substitute: {{a: {'x' * 10_000}}}}}\n"),
        },
        {"Kustomization apps": "spec.postBuild: the values of variables have more than 16777216 characters"},
    ),
    Hostile(
        "a base that needs the network",
        {
            "apps/kustomization.yaml": "resources: ['https://git.example.com/a/b//c?ref=v1']\n",
            "ks.yaml": kustomization("apps", "./apps"),
        },
        {"Kustomization apps": "the network is forbidden by --offline: kustomize:"},
    ),
    Hostile(
        "options and transports of git in an address",
        {
            f"{number}.yaml": "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\n"
            f"metadata: {{name: g{number}, namespace: flux-system}}\nspec: {{url: {url!r}}}\n"
            for number, url in enumerate(
                ("--upload-pack=touch pwned", "ext::sh -c touch% pwned", "file:///absent/repository")
            )
        },
        {
            "GitRepository g0": "is not the address of a git repository",
            "GitRepository g1": "the network is forbidden by --offline",
            "GitRepository g2": "does not appear to be a git repository",
        },
    ),
    Hostile(
        "a kustomization that names itself",
        {"apps/kustomization.yaml": "resources: [../apps]\n", "ks.yaml": kustomization("apps", "./apps")},
        {"Kustomization apps": "cycle detected"},
    ),
    Hostile(
        "a Kustomization that renders itself under ever longer names",
        {
            "apps/kustomization.yaml": "resources: [ks.yaml]\nnameSuffix: -x\n",
            "apps/ks.yaml": kustomization("apps", "./apps"),
        },
        {},
    ),
    Hostile(
        "Windows line ends and byte order marks",
        {
            "apps/crlf.yaml": config_map("crlf").replace("\n", "\r\n"),
            "apps/bom.yaml": "\ufeff" + config_map("bom"),
            "loaded-crlf.yaml": config_map("loaded-crlf").replace("\n", "\r\n"),
            "loaded-bom.yaml": "\ufeff" + config_map("loaded-bom"),
            "ks.yaml": kustomization("apps", "./apps").replace("\n", "\r\n"),
        },
        {},
        built=("bom", "crlf", "loaded-bom", "loaded-crlf", "sound"),
    ),
)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
async def test_a_hostile_tree_fails_without_leaking_files(case: Hostile, tmp_path: Path) -> None:
    write_tree(
        tmp_path, {"secret.yaml": config_map("secret", word="hidden"), "more/kustomization.yaml": "resources: []\n"}
    )
    tree = write_tree(tmp_path / "tree", with_chart({**SOUND, **case.files}))
    case.prepare(tree)
    result = await built(tree, tmp_path)
    found = failures(result)
    assert found.keys() == case.told.keys(), found
    for who, message in case.told.items():
        assert message in found[who]
    assert all(each.place is not None for each in result.failed.values())
    assert set(names(result)) == set(case.built)
    assert not list(tmp_path.rglob("pwned"))
