"""The options of `wharfinger run` for the containment of hooks, and refusals with a remedy."""

import argparse
import grp
import pwd
from pathlib import Path

import pytest

from tests.hooks.support.contained import no_sandbox
from wharfinger.hooks.containment import options as containment_options
from wharfinger.hooks.containment.containment import Containment
from wharfinger.hooks.containment.options import FILE_BYTES, ContainmentError, add_containment_options, containment_of


def parse(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_containment_options(parser)
    return parser.parse_args(words)


def test_default_options_limit_only_file_sizes() -> None:
    assert containment_of(parse()) == Containment(file_bytes=FILE_BYTES)


def test_all_options_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho bubblewrap 0.11.2\n")
    program.chmod(0o755)
    args = parse(
        "--hook-users=400000-400003",
        f"--hook-sandbox={program}",
        "--hook-memory=2Gi",
        "--hook-file-size=none",
        "--hook-processes=64",
        "--hook-open-files=256",
    )
    socket = tmp_path / "x" / ".." / "debug.sock"
    found = containment_of(args, state_dir=tmp_path, socket=socket, extra_binds={"/shell_lib.sh": program})
    assert found.users is not None
    assert (found.users.first, found.users.last) == (400_000, 400_003)
    assert (found.sandbox, found.memory_bytes, found.file_bytes) == (program, 2 * 1024**3, None)
    assert (found.processes, found.open_files) == (64, 256)
    assert found.socket == tmp_path / "debug.sock"
    assert (found.state_dir, dict(found.extra_binds)) == (tmp_path, {"/shell_lib.sh": program})


@pytest.mark.skipif(bool(no_sandbox()), reason=no_sandbox() or "it works")
def test_sandbox_program_is_found_on_path() -> None:
    found = containment_of(parse("--hook-sandbox"))
    assert found.sandbox is not None
    assert found.sandbox.name == "bwrap"


def test_missing_sandbox_program_is_refused() -> None:
    with pytest.raises(ContainmentError, match="no '/no/such' on PATH; install bubblewrap"):
        containment_of(parse("--hook-sandbox=/no/such"))


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo bubblewrap 0.6.1", "0.7 or newer is needed"),
        ("echo something else", "0.7 or newer is needed"),
        ("exit 3", "does not print its version"),
    ],
)
def test_sandbox_that_cannot_limit_memory_is_refused(tmp_path: Path, script: str, words: str) -> None:
    program = tmp_path / "bwrap"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    with pytest.raises(ContainmentError, match=words):
        containment_of(parse(f"--hook-sandbox={program}"))


def test_hook_users_require_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 5)
    with pytest.raises(ContainmentError, match="only root"):
        containment_of(parse("--hook-users=400000-400003"))


def test_hook_users_of_existing_accounts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    somebody = next(entry for entry in pwd.getpwall() if entry.pw_uid > 0)
    with pytest.raises(ContainmentError, match=f"{somebody.pw_uid} is {somebody.pw_name}"):
        containment_of(parse(f"--hook-users={somebody.pw_uid}-{somebody.pw_uid}"))


def test_hook_users_overlapping_groups_or_subordinate_ids_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No group may have the number of a hook user. All processes of a hook user are killed, so its number must also not be one
    of the subordinate ids (``/etc/subuid``) that containers may use.
    """
    monkeypatch.setattr("os.geteuid", lambda: 0)
    table = tmp_path / "subuid"
    table.write_text("# rootless\nalice:400000:65536\nbroken\nbob:x:1\n")
    monkeypatch.setattr(containment_options, "SUBORDINATE", (tmp_path / "missing", table))
    for taken in ("399990-400000", "465535-465540", "400001-400002", "465000-466000"):
        with pytest.raises(ContainmentError, match="subuid gives to alice; choose a range that is not in use"):
            containment_of(parse(f"--hook-users={taken}"))
    monkeypatch.setattr("grp.getgrall", lambda: [grp.struct_group(("staff", "x", 500_000, []))])
    with pytest.raises(ContainmentError, match="500000 is the group staff"):
        containment_of(parse("--hook-users=499999-500000"))
    for free in ("399990-399999", "465536-465540", "500001-500002"):
        assert containment_of(parse(f"--hook-users={free}")).users is not None


@pytest.mark.parametrize(
    "word",
    [
        "--hook-users=0-5",
        "--hook-users=9-5",
        "--hook-users=5",
        "--hook-users=1-20000",
        "--hook-users=4294967295-4294967295",
        "--hook-memory=0",
        "--hook-memory=1.5Gi",
        "--hook-file-size=-1",
        "--hook-processes=0",
        "--hook-open-files=many",
    ],
)
def test_invalid_option_values_are_refused(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(word)
    assert word.split("=", maxsplit=1)[0] in capsys.readouterr().err
