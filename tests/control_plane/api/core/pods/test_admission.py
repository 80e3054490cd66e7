"""The admission plugins for Pods, and their order."""

from wharfinger.control_plane.admission.chain import ORDER
from wharfinger.control_plane.api.core.pods.admission import POD_PLUGINS


def test_all_pod_plugins_are_in_the_admission_order() -> None:
    assert {plugin.name for plugin in POD_PLUGINS} <= set(ORDER)
