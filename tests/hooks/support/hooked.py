"""Hooks that have a configuration but no program, for tests that start the monitors and schedules of hooks, but run no hook."""

from pathlib import Path

from wharfinger.hooks.config.config import read_hook_config
from wharfinger.hooks.running.discovery import Hook


def hook(config: str, name: str = "hooks/a.sh") -> Hook:
    """Return a hook with this configuration."""
    return Hook(name, Path("/nowhere") / name, (), Path("/nowhere"), read_hook_config(config.encode(), hook=name))


WATCHING = (
    "{configVersion: v1, kubernetes: [{name: maps, apiVersion: v1, kind: ConfigMap, queue: q, "
    "labelSelector: {matchLabels: {app: x}}, includeSnapshotsFrom: [maps]}]}"
)
"""A configuration that watches ConfigMaps, as `tests.hooks.support.watching.obj` makes them."""
