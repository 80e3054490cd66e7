from wharfinger.control_plane.api.common.admission import Operation, Plugin


def test_a_plugin_does_nothing_by_default() -> None:
    plugin = Plugin("Any", frozenset({Operation.CREATE}))

    assert (plugin.mutate, plugin.check, plugin.charge, plugin.resources) == (None, None, None, frozenset())
