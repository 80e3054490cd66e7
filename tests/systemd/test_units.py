"""The systemd units, checked by systemd itself, and compared with the daemon and its command line."""

import argparse
import re
import shutil
import subprocess
from pathlib import Path, PurePosixPath

import pytest

from tests.programs import ROOT
from wharfinger.runtime.daemon import commands

UNITS = ROOT / "systemd"
SERVICE = UNITS / "wharfinger.service"
SOCKET = UNITS / "wharfinger.socket"
EXPOSURE = 15
"""The highest allowed exposure in tenths. `systemd-analyze security` calls 2.0 safe; this unit has 1.2, and a plain one 9.6."""

Unit = dict[str, list[str]]


def read_unit(path: Path) -> Unit:
    """Return the values of each ``Section.Key`` in order, also empty ones (which reset a list, systemd.syntax(7))."""
    unit: Unit = {}
    section = ""
    for line in path.read_text().splitlines():
        text = line.strip()
        if not text or text.startswith(("#", ";")):
            continue
        if text.startswith("["):
            section = text.strip("[]")
            continue
        key, equals, value = text.partition("=")
        assert equals, f"{path.name}: {line!r} is no assignment"
        assert section, f"{path.name}: {line!r} stands before any section"
        unit.setdefault(f"{section}.{key}", []).append(value)
    return unit


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run systemd-analyze (Debian package: systemd). Development requires it, so the tests are not skipped without it."""
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False)


@pytest.fixture
def runnable(tmp_path: Path) -> Path:
    """Return a folder with copies of the units. Their commands are replaced by a program that exists on this machine, because
    `systemd-analyze verify` checks that the program of a command exists.
    """
    program = shutil.which("true")
    assert program is not None
    for path in (SERVICE, SOCKET):
        text = path.read_text()
        for start in read_unit(path).get("Service.ExecStart", []):
            text = text.replace(start.split()[0], program)
        (tmp_path / path.name).write_text(text)
    return tmp_path


def test_systemd_verifies_the_units_without_a_message(runnable: Path) -> None:
    done = analyze("verify", "--man=no", str(runnable / SERVICE.name), str(runnable / SOCKET.name))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("defect", ["Type=notfy", "Colour=blue", "WatchdogSec=soon", "ExecStart=/nowhere/at/all"])
def test_systemd_reports_a_planted_defect(defect: str, runnable: Path) -> None:
    path = runnable / SERVICE.name
    path.write_text(path.read_text().replace("[Service]\n", f"[Service]\n{defect}\n"))
    done = analyze("verify", "--man=no", str(path))
    assert done.stdout + done.stderr != ""


def test_the_service_is_confined() -> None:
    done = analyze("security", "--offline=true", f"--threshold={EXPOSURE}", str(SERVICE))
    assert done.returncode == 0, done.stdout[-200:]


def test_an_unconfined_service_exceeds_the_threshold(tmp_path: Path) -> None:
    loose = tmp_path / SERVICE.name
    loose.write_text(SERVICE.read_text().replace("SystemCallFilter", "#").replace("CapabilityBoundingSet", "#"))
    assert analyze("security", "--offline=true", f"--threshold={EXPOSURE}", str(loose)).returncode != 0


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("Type", ["notify"]),
        ("NotifyAccess", ["main"]),
        ("KillMode", ["mixed"]),
        ("Restart", ["always"]),
        ("OOMPolicy", ["continue"]),
        ("ExecReload", ["/bin/kill -HUP $MAINPID"]),
        ("StateDirectory", ["wharfinger"]),
        ("StateDirectoryMode", ["0700"]),
        ("UMask", ["0077"]),
        ("NoNewPrivileges", ["yes"]),
        ("CapabilityBoundingSet", [""]),
        ("AmbientCapabilities", [""]),
        ("ProtectSystem", ["strict"]),
        ("PrivateTmp", ["yes"]),
        ("RestrictAddressFamilies", ["AF_UNIX AF_INET AF_INET6 AF_NETLINK"]),
        ("SystemCallFilter", ["@system-service", "~@privileged"]),
    ],
)
def test_the_service_has_the_settings_that_the_daemon_needs(key: str, values: list[str]) -> None:
    assert read_unit(SERVICE)[f"Service.{key}"] == values


def test_the_daemon_accepts_the_command_line_of_the_unit() -> None:
    unit = read_unit(SERVICE)
    (start,) = unit["Service.ExecStart"]
    program, command, *arguments = start.split()
    assert PurePosixPath(program).is_absolute()
    assert command == "run"
    parser = argparse.ArgumentParser()
    commands.add_run(parser)
    args = parser.parse_args(arguments)
    assert str(args.state_dir) == f"/var/lib/{unit['Service.StateDirectory'][0]}"
    assert read_unit(SOCKET)["Socket.ListenStream"] == [str(args.socket)]
    assert f"PATH={PurePosixPath(program).parent}:" in " ".join(unit["Service.Environment"])
    assert int(unit["Service.TimeoutStopSec"][0]) > args.grace
    assert int(unit["Service.WatchdogSec"][0]) > 0


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("MemoryDenyWriteExecute", "node and java compile while they run"),
        ("NoExecPaths", "packages are unpacked in the state folder, and their hooks are run there"),
        ("PrivateNetwork", "hooks call what they look after"),
        ("IPAddressDeny", "hooks call what they look after"),
        ("MemoryMax", "what a hook needs is not known"),
        ("RootDirectory", "hooks call what the host has"),
    ],
)
def test_the_service_has_no_setting_that_breaks_hooks(key: str, why: str) -> None:
    assert f"Service.{key}" not in read_unit(SERVICE), why


def test_hooks_find_programs_and_refused_system_calls_are_errors() -> None:
    unit = read_unit(SERVICE)
    (path,) = [value for value in unit["Service.Environment"] if value.startswith("PATH=")]
    assert {"/usr/bin", "/bin"} <= set(path.removeprefix("PATH=").split(":"))
    assert unit["Service.SystemCallErrorNumber"] == ["EPERM"]


def test_the_page_explains_the_confinement_of_hooks() -> None:
    page = (UNITS.parent / "docs" / "service.md").read_text().partition("\n## On a host")[2].partition("\n## ")[0]
    unit = read_unit(SERVICE)
    confining = [
        key.partition(".")[2]
        for key in unit
        if re.match(r"Service\.(Protect|Private|Restrict|NoNew|DynamicU|UMask)", key)
    ]
    assert len(confining) > 10
    assert [key for key in confining if f"`{key}" not in page] == []
    told = {key for key in re.findall(r"`([A-Z][A-Za-z]+)(?:=[^`]*)?`", page) if not key.isupper()}
    optional = {"ReadWritePaths", "MemoryDenyWriteExecute"}
    assert [key for key in told - optional if not any(key == each.partition(".")[2] for each in unit)] == []


def test_the_socket_is_accessible_only_to_its_owner() -> None:
    unit = read_unit(SOCKET)
    assert unit["Socket.SocketMode"] == ["0600"]
    assert unit["Socket.DirectoryMode"] == ["0700"]
    assert "Socket.Accept" not in unit
    assert len(unit["Socket.ListenStream"]) == 1


def test_the_units_name_each_other() -> None:
    service, socket = read_unit(SERVICE), read_unit(SOCKET)
    assert service["Unit.Requires"] == [SOCKET.name]
    assert SOCKET.name in service["Unit.After"][0].split()
    assert service["Install.Also"] == [SOCKET.name]
    assert socket["Unit.PartOf"] == [SERVICE.name]
    # With this setting, systemd would remove the runtime folder, and the socket in it, when the service ends.
    assert "Service.RuntimeDirectory" not in service


def test_the_folder_contains_only_the_units() -> None:
    assert sorted(path.name for path in UNITS.iterdir()) == [SERVICE.name, SOCKET.name]
