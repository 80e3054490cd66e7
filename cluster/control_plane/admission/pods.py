"""Plugins about Pods."""

from typing import Final

from wharfinger.cluster.control_plane.admission.plugin import Plugin

POD_PLUGINS: Final[tuple[Plugin, ...]] = ()
