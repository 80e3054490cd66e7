from tests.control_plane.support.backend_views import FakeView
from tests.control_plane.support.samples import builtin
from wharfinger.control_plane.access.users import User
from wharfinger.control_plane.api.common.admission import Admission, Operation
from wharfinger.control_plane.api.core.admission import taint_node
from wharfinger.formats.json.value import find


def test_new_nodes_are_not_ready() -> None:
    kind = builtin("", "v1", "nodes").kind
    admission = Admission(FakeView(), User("u", ()), kind, Operation.CREATE, "", "", "a", {}, None)
    node = taint_node(admission, {})

    assert find(node, "spec", "taints") == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    assert taint_node(admission, node) == node
