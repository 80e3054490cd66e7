"""Hooks for tests that start them without running them: what a configuration says, and nowhere to run it."""

from pathlib import Path

from wharfinger.hooks.config.config import read_hook_config
from wharfinger.hooks.running.discovery import Hook


def hook(config: str, name: str = "hooks/a.sh") -> Hook:
    """A hook that says this of itself."""
    return Hook(name, Path("/nowhere") / name, (), Path("/nowhere"), read_hook_config(config.encode(), hook=name))


WATCHING = (
    "{configVersion: v1, kubernetes: [{name: maps, apiVersion: v1, kind: ConfigMap, queue: q, "
    "labelSelector: {matchLabels: {app: x}}, includeSnapshotsFrom: [maps]}]}"
)
"""ConfigMaps as `tests.hooks.support.watching.obj` makes them."""
