"""Plugins about namespaces and what is counted in them."""

from typing import Final

from wharfinger.cluster.control_plane.admission.plugin import Plugin

CORE_PLUGINS: Final[tuple[Plugin, ...]] = ()
