"""The configuration of a daemon: its defaults are restrictive."""

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from wharfinger.runtime.daemon.config import HOOK_TIMEOUT_S, DaemonConfig
from wharfinger.runtime.daemon.leadership import LEASE_S
from wharfinger.runtime.resources.application_scope import ApplicationScope


def test_the_defaults_are_restrictive(tmp_path: Path) -> None:
    config = DaemonConfig(None, "", tmp_path, tmp_path / "socket", Path("helm"), 30.0)
    assert config.application_scope is ApplicationScope.NAMESPACE
    assert (config.admission, config.metrics_address, config.local_packages) == (None, "", ())
    assert (config.hook_timeout_s, config.lease_s) == (HOOK_TIMEOUT_S, LEASE_S)
    with pytest.raises(FrozenInstanceError):
        setattr(config, "lease_s", 1.0)  # noqa: B010 - mypy knows that this cannot be done
