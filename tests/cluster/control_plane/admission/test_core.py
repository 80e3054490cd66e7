from tests.cluster.control_plane.samples import builtin
from tests.cluster.control_plane.views import FakeView
from wharfinger.cluster.control_plane.admission.core import taint_node
from wharfinger.cluster.control_plane.admission.plugin import Admission, Operation
from wharfinger.cluster.control_plane.authentication import User
from wharfinger.formats.json_value import find


def test_new_nodes_are_not_ready() -> None:
    kind = builtin("", "v1", "nodes").kind
    admission = Admission(FakeView(), User("u", ()), kind, Operation.CREATE, "", "", "a", {}, None)
    node = taint_node(admission, {})

    assert find(node, "spec", "taints") == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    assert taint_node(admission, node) == node
