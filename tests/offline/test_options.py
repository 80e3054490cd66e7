"""The options that offline commands share."""

import argparse
from pathlib import Path

import pytest

from wharfinger.offline.options import OptionError, add_options, add_path, default_cache, read_options


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_path(parser)
    add_options(parser)
    return parser.parse_args(arguments)


def test_values_of_several_files_are_merged(tmp_path: Path) -> None:
    one, two = tmp_path / "1.yaml", tmp_path / "2.yaml"
    one.write_text("a: {b: 1, c: 1}\n")
    two.write_text("a: {c: 2}\n")
    options = read_options(parsed(str(tmp_path), "--values", str(one), "--values", str(two), "--engine=none"))
    assert options.settings == {"a": {"b": 1, "c": 2}}
    assert options.package(tmp_path).settings == options.settings
    two.write_text("[]")
    with pytest.raises(OptionError, match="--values"):
        read_options(parsed(str(tmp_path), "--values", str(two)))


def test_options_have_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    options = read_options(parsed(str(tmp_path)))
    assert options.tools.network
    assert options.tools.cache == default_cache() == tmp_path / "wharfinger"
    assert not options.config.applications_reach_cluster
    assert options.config.options.api_versions == ()
    assert not options.config.options.allow_missing_secrets
    assert not options.config.options.allow_missing_crds
    assert options.progress


def test_switches_set_their_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    options = read_options(
        parsed(str(tmp_path), "--allow-missing-secrets", "--allow-missing-crds", "--no-progress", "--engine=none")
    )
    assert options.config.options.allow_missing_secrets
    assert options.config.options.allow_missing_crds
    assert not options.progress
    assert options.tools.docker_config == tmp_path / "config.json"


def test_application_scope_api_versions_and_offline_are_read(tmp_path: Path) -> None:
    options = read_options(
        parsed(str(tmp_path), "--application-scope=cluster", "--api-versions=a/v1, b/v1,", "--offline")
    )
    assert options.config.applications_reach_cluster
    assert options.config.options.api_versions == ("a/v1", "b/v1")
    assert not options.tools.network
