"""Plugins about storage, networking and the other groups."""

from typing import Final

from wharfinger.cluster.control_plane.admission.plugin import Plugin

GROUP_PLUGINS: Final[tuple[Plugin, ...]] = ()
