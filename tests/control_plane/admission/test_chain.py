from wharfinger.control_plane.admission.chain import ORDER, PLUGINS


def test_plugins_run_in_the_order_of_kubernetes() -> None:
    places = [ORDER.index(plugin.name) for plugin in PLUGINS]

    assert places == sorted(places)
