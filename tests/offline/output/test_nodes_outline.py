"""The graph of a tree as text."""

from wharfinger.offline.output.nodes import Node, NodeState
from wharfinger.offline.output.nodes_outline import nodes_outline
from wharfinger.runtime.fixpoint.model import Id

ROOT, APPS, WEB, SECRET, VALUES = (
    Id(kind, "x", name)
    for kind, name in (
        ("Kustomization", "root"),
        ("Kustomization", "apps"),
        ("HelmRelease", "web"),
        ("Secret", "login"),
        ("ConfigMap", "values"),
    )
)


def test_nodes_are_indented_below_their_maker() -> None:
    nodes = (
        Node(VALUES, NodeState.DATA),
        Node(WEB, NodeState.BLOCKED, made_by=APPS, depends_on=(VALUES, APPS, SECRET), message="waits"),
        Node(APPS, NodeState.BUILT, 1, made_by=ROOT, depends_on=(ROOT,)),
        Node(ROOT, NodeState.BUILT, 3),
        Node(SECRET, NodeState.ABSENT),
    )
    assert nodes_outline(nodes).splitlines() == [
        "Kustomization x/root (3 objects)",
        "  Kustomization x/apps (1 object)",
        "    HelmRelease x/web (blocked) -> ConfigMap x/values, Secret x/login (absent)",
    ]


def test_a_node_with_an_unknown_maker_is_a_root() -> None:
    assert nodes_outline((Node(WEB, NodeState.BUILT, 2, made_by=APPS),)) == "HelmRelease x/web (2 objects)\n"


def test_nodes_that_make_each_other_are_listed_once() -> None:
    nodes = (Node(APPS, NodeState.BUILT, 1, made_by=ROOT), Node(ROOT, NodeState.BUILT, 1, made_by=APPS))
    assert nodes_outline(nodes).splitlines() == ["Kustomization x/apps (1 object)", "  Kustomization x/root (1 object)"]


def test_control_characters_are_not_printed() -> None:
    assert "\x1b" not in nodes_outline((Node(Id("HelmRelease", "x", "a\x1b[31m"), NodeState.BUILT),))
