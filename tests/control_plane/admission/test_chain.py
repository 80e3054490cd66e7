from wharfinger.control_plane.admission.chain import ORDER, PLUGINS


def test_plugins_have_the_order_of_the_server() -> None:
    places = [ORDER.index(plugin.name) for plugin in PLUGINS]

    assert places == sorted(places)
