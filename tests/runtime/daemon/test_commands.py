"""``wharfinger run``: its arguments, and its messages if it cannot start. The tests of the daemon itself are
in test_daemon.py.
"""

import argparse
from pathlib import Path

import pytest

from wharfinger.__main__ import main
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.daemon.commands import add_run
from wharfinger.runtime.resources.resources import CONFIG_MAP


def parse(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_run(parser)
    return parser.parse_args(arguments)


def test_options_have_their_defaults() -> None:
    args = parse()
    assert (args.kubeconfig, args.context, args.state_dir, args.socket) == (None, "", None, None)
    assert (args.helm, args.grace, args.log_format, args.log_level) == ("helm", 30.0, "text", "info")
    assert (args.embedded, args.local_packages, args.platform_version, args.hook_timeout) == (False, [], "", 600.0)
    assert (args.edition, args.bundle, args.bootstrapped_by) == ("", "", None)


def test_edition_bundle_and_bootstrap_are_read() -> None:
    args = parse("--edition", "ee", "--bundle", "Default", "--bootstrapped-by", "kube-system/done.v1")
    assert (args.edition, args.bundle) == ("ee", "Default")
    assert args.bootstrapped_by == ObjectKey(CONFIG_MAP, "kube-system", "done.v1")


def test_limits_and_shares_have_their_defaults() -> None:
    args = parse()
    assert (args.max_work, args.max_downloads, args.max_renders) == (16, 8, 3)
    assert (args.max_namespace_share, args.max_registry_share) == (75, 50)
    assert (args.download_least_speed, args.download_window) == (16.0, 20.0)


def test_the_lease_duration_can_be_set() -> None:
    assert parse().lease_duration == 15.0
    assert parse("--lease-duration=3").lease_duration == 3.0


def test_a_shard_has_a_name() -> None:
    assert (parse().shard, parse("--shard=blue").shard) == ("", "blue")


@pytest.mark.parametrize("written", ["Blue", "a=b", "-a"])
def test_invalid_names_of_shards_are_refused(written: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(f"--shard={written}")
    assert f"{written!r} is not the name of a shard" in capsys.readouterr().err


@pytest.mark.parametrize(
    "other", ["--admission=127.0.0.1:9443", "--worker-pools", "--modules-dir=.", "--global-hooks-dir=."]
)
def test_cluster_wide_options_are_refused_with_a_shard(other: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--shard", "blue", other]) == 2
    assert f"{other.partition('=')[0]} may be used only without --shard" in capsys.readouterr().err


@pytest.mark.parametrize("written", ["2", "301", "-5", "4.5", "soon"])
def test_a_lease_duration_is_a_whole_number_within_bounds(written: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(f"--lease-duration={written}")
    assert f"{written!r} is not a whole number of seconds between 3 and 300" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--max-namespace-share", "--max-registry-share"])
@pytest.mark.parametrize("written", ["0", "101", "-1", "half", "50%"])
def test_a_share_is_a_percentage(option: str, written: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(f"{option}={written}")
    assert f"{written!r} is not a percentage between 1 and 100" in capsys.readouterr().err


@pytest.mark.parametrize("written", ["0", "-1", "nan", "inf", "fast", "1048577"])
def test_a_minimum_speed_is_above_zero(written: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(f"--download-least-speed={written}")
    assert f"expected a number of KiB/s, above 0 and at most 1048576, found {written!r}" in capsys.readouterr().err


@pytest.mark.parametrize("written", ["", "done", "/done", "kube-system/", "a/b/c", "Kube/done", "a.b/done", "a/-b"])
def test_the_bootstrap_config_map_has_a_namespace_and_a_name(written: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse("--bootstrapped-by", written)
    assert f"{written!r} is not NAMESPACE/CONFIGMAP" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--edition", "--bundle"])
@pytest.mark.parametrize("written", [" ee", "ee ", "e\ne", "e" * 65])
def test_an_edition_and_a_bundle_are_names(option: str, written: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(option, written)
    assert "expected at most 64 printable characters, without spaces at the ends" in capsys.readouterr().err


@pytest.mark.parametrize("seconds", ["0", "-1", "3601", "soon"])
def test_a_grace_time_is_between_0_and_3600_seconds(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse("--grace", seconds)
    assert caught.value.code == 2
    assert "expected a number of seconds, above 0 and at most 3600" in capsys.readouterr().err


def test_several_folders_of_packages_may_be_given() -> None:
    args = parse("--local-packages", "a", "--local-packages", "b")
    assert args.local_packages == [Path("a"), Path("b")]


@pytest.mark.parametrize("more", [("--kubeconfig", "x"), ("--context", "x")])
def test_an_embedded_and_an_external_cluster_are_mutually_exclusive(
    more: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--embedded", *more]) == 2
    assert "leave out --kubeconfig and --context" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--local-packages", "/no/such/folder", "not a folder; name an existing one"),
        ("--platform-version", "zzz", "is not a version; write one like 1.2.3 or 1.2.3-rc.1\n"),
        ("--edition", "ee", "--edition and --bundle are used only together"),
        ("--bundle", "Default", "give both"),
    ],
)
def test_invalid_options_are_refused_before_anything_is_created(
    option: str, value: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--state-dir", str(tmp_path / "state"), option, value]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("command", "option"),
    [("run", "--state-dir"), ("run", "--socket"), ("doctor", "--state-dir"), ("memory", "--socket")],
)
def test_an_empty_path_is_refused(command: str, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An unset shell variable in place of a path gives an empty text. This text must not mean the current folder."""
    with pytest.raises(SystemExit):
        main([command, option, ""])
    assert f"argument {option}: expected a path, found an empty text" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--chaos", "drop-before"], "--chaos is used only with --embedded"),
        (["--no-tls"], "--no-tls is used only with --embedded"),
        (["--kubernetes-version", "1.37"], "--kubernetes-version is used only with --embedded"),
        (["--embedded", "--chaos", "explode"], "there is no fault 'explode'"),
        (["--embedded", "--chaos", "absent.yaml"], "No such file"),
    ],
)
def test_invalid_options_of_the_embedded_control_plane_are_refused(
    more: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *more]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.slow
def test_a_failed_start_of_the_embedded_control_plane_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "embedded").mkdir()
    (tmp_path / "embedded" / "data.db").mkdir()
    assert main(["run", "--embedded", "--state-dir", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "error: the embedded control plane did not start" in said
    assert "data.db" in said


def test_missing_helm_is_an_error_with_a_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--helm", "no-such-helm"]) == 1
    assert "install Helm" in capsys.readouterr().err


def test_too_long_a_socket_is_refused_before_anything_is_created(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LISTEN_FDS", raising=False)
    assert main(["run", "--embedded", "--state-dir", str(tmp_path / "state"), "--socket", "x" * 120]) == 2
    assert "is too long for a socket (at most 107); choose a shorter one with --socket" in capsys.readouterr().err
    assert not (tmp_path / "state").exists()


def test_an_unusable_state_folder_is_an_error_with_a_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["run", "--state-dir", str(tmp_path / "file" / "state")]) == 1
    assert "--state-dir" in capsys.readouterr().err


def test_a_missing_kubeconfig_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", "--state-dir", str(tmp_path / "s"), "--kubeconfig", str(tmp_path / "none")]
    assert main(arguments) == 1
    assert str(tmp_path / "none") in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "written", "name", "value"),
    [
        ("--max-api", "7", "max_api", 7),
        ("--max-downloads", "7", "max_downloads", 7),
        ("--max-hooks", "7", "max_hooks", 7),
        ("--max-loads", "7", "max_loads", 7),
        ("--max-renders", "7", "max_renders", 7),
        ("--hook-timeout", "90", "hook_timeout", 90.0),
        ("--retry-max", "90", "retry_max", 90.0),
        ("--log-format", "json", "log_format", "json"),
        ("--metrics-address", "127.0.0.1:9652", "metrics_address", "127.0.0.1:9652"),
        ("--flight-recorder-size", "3", "flight_recorder_size", 3),
        ("--registry-tokens", "/tokens", "registry_tokens", [Path("/tokens")]),
        ("--registries-conf", "/conf", "registries_conf", Path("/conf")),
        ("--admission", "10.0.0.1:9443", "admission", "10.0.0.1:9443"),
        ("--admission-service", "system/webhook", "admission_service", "system/webhook"),
        ("--admission-pod-ip", "10.0.0.7", "admission_pod_ip", "10.0.0.7"),
        ("--config-map", "system/settings", "config_map", ObjectKey(CONFIG_MAP, "system", "settings")),
    ],
)
def test_options_accept_their_values(option: str, written: str, name: str, value: object) -> None:
    assert getattr(parse(), name) != value
    assert getattr(parse(option, written), name) == value


@pytest.mark.parametrize("option", ["--on-startup", "--synchronization"])
def test_repetition_options_accept_needed_and_always(option: str) -> None:
    name = option.strip("-").replace("-", "_")
    first, second = (getattr(parse(option, written), name) for written in ("needed", "always"))
    assert first != second


@pytest.mark.parametrize(("written", "is_taken"), [("512Mi", True), ("1Gi", True), ("much", False), ("-1", False)])
def test_the_memory_of_pools_is_a_quantity(written: str, is_taken: bool) -> None:
    if is_taken:
        assert parse("--pool-memory", written).pool_memory >= 512 << 20
        return
    with pytest.raises(SystemExit):
        parse("--pool-memory", written)
