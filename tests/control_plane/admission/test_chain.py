from wharfinger.control_plane.admission.chain import ORDER, PLUGINS


def test_plugins_stand_in_the_servers_order() -> None:
    places = [ORDER.index(plugin.name) for plugin in PLUGINS]

    assert places == sorted(places)
