"""The files of hooks that run in pods: the archive that a pod gets, and the results, which come in an untrusted archive."""

import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hooks.support.scripts import run_of, write_hook
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running import pod_files
from wharfinger.hooks.running.pod_files import pack, unpack
from wharfinger.hooks.running.results import METRICS, OBJECT_PATCHES
from wharfinger.hooks.running.run_folder import RunFolder, fill_run_folder, make_run_folder, name_run_folder
from wharfinger.hooks.running.runner import HookRun


def hook_in(folder: Path) -> HookRun:
    """Return a run of a hook that has a library in its folder."""
    (folder / "hooks/lib").mkdir(parents=True)
    script = write_hook(folder / "hooks", "#!/bin/sh\n. ./lib/x.sh\n", name="hook.sh")
    (folder / "hooks/lib/x.sh").write_text("true\n")
    run = replace(run_of(script), cwd=folder / "hooks", worker_pool="builders", namespace="prod", owner="prod.app")
    return replace(run, environment={"APPLICATION_NAME": "it's $HOME"}, answers=("ANSWER",))


def members(data: bytes) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return {member.name: member for member in archive}


def made(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for member, content in entries:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    return member


def test_archive_contains_the_hooks_folder_and_run_files(tmp_path: Path) -> None:
    run = hook_in(tmp_path)
    folder = make_run_folder(tmp_path / "scratch", run)
    found = pack(run, folder)
    assert (found.namespace, found.pool, found.argv) == ("prod", "builders", ("./hook.sh",))
    inside = members(found.archive)
    assert {
        "environment",
        "program/hook.sh",
        "program/lib",
        "program/lib/x.sh",
        "files/binding-context.json",
    } <= inside.keys()
    assert inside["program/hook.sh"].mode & 0o111
    assert inside["files/binding-context.json"].mode == 0o600
    assert all(member.uid == 0 and member.uname == "" for member in inside.values())
    assert set(found.outputs) == set(folder.outputs().values())


def test_credentials_are_not_in_the_archive(tmp_path: Path) -> None:
    run = hook_in(tmp_path)
    folder = name_run_folder(tmp_path / "scratch", run, has_kubeconfig=True)
    fill_run_folder(folder, run, kubeconfig=b"the-secret")
    found = pack(run, folder)
    assert b"the-secret" not in found.archive
    assert b"KUBECONFIG" not in found.archive


def test_links_leading_out_of_the_folder_are_not_in_the_archive(tmp_path: Path) -> None:
    run = hook_in(tmp_path)
    (run.cwd / "in").symlink_to("lib/x.sh")
    (run.cwd / "out").symlink_to("../../../etc/passwd")
    (run.cwd / "absolute").symlink_to(run.cwd / "lib/x.sh")
    found = members(pack(run, make_run_folder(tmp_path / "scratch", run)).archive)
    assert found["program/in"].linkname == "lib/x.sh"
    assert "program/out" not in found
    assert "program/absolute" not in found


def test_program_beyond_the_limits_or_outside_the_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = hook_in(tmp_path)
    folder = make_run_folder(tmp_path / "scratch", run)
    for name, limit in (("MAX_PROGRAM_BYTES", 10), ("MAX_PROGRAM_FILES", 1)):
        with monkeypatch.context() as patch:
            patch.setattr(pod_files, name, limit)
            with pytest.raises(HookError, match="found more"):
                pack(run, folder)
    with pytest.raises(HookError, match="expected its program below"):
        pack(replace(run, executable=Path("/usr/bin/python3")), folder)


def outputs(folder: RunFolder) -> dict[str, bytes | None]:
    paths = {name: folder.path / name for name in folder.outputs().values()}
    return {name: path.read_bytes() if path.exists() else None for name, path in paths.items()}


def test_results_are_unpacked_by_name_and_missing_ones_deleted(tmp_path: Path) -> None:
    run = hook_in(tmp_path)
    folder = make_run_folder(tmp_path / "scratch", run)
    patches, metrics = folder.outputs()[OBJECT_PATCHES], folder.outputs()[METRICS]
    unpack(made((entry(patches), b"patch"), (entry(f"./{metrics}"), b"metric"), (entry("other"), b"x")), folder)
    found = outputs(folder)
    assert (found[patches], found[metrics]) == (b"patch", b"metric")
    assert all(content is None for name, content in found.items() if name not in (patches, metrics))
    assert not (folder.path / "other").exists()
    with pytest.raises(HookError):
        folder.read("VALUES_JSON_PATCH_PATH")


@pytest.mark.parametrize(
    "member",
    [
        entry("metrics.json", tarfile.SYMTYPE, "/etc/passwd"),
        entry("metrics.json", tarfile.LNKTYPE, "binding-context.json"),
        entry("metrics.json", tarfile.DIRTYPE),
        entry("metrics.json", tarfile.FIFOTYPE),
        entry("metrics.json", tarfile.CHRTYPE),
        entry("../metrics.json"),
        entry("/metrics.json"),
        entry("binding-context.json"),
        entry("a/../metrics.json"),
    ],
    ids=lambda member: f"{member.name} {member.type!r}",
)
def test_other_archive_members_are_ignored(tmp_path: Path, member: tarfile.TarInfo) -> None:
    run = hook_in(tmp_path)
    folder = make_run_folder(tmp_path / "scratch", run)
    before = (folder.path / "binding-context.json").read_bytes()
    unpack(made((member, b"")), folder)
    assert set(outputs(folder).values()) == {None}
    assert (folder.path / "binding-context.json").read_bytes() == before
    assert sorted(path.name for path in folder.path.parent.iterdir()) == [folder.path.name]


def test_oversized_result_or_invalid_archive_fails_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = hook_in(tmp_path)
    folder = make_run_folder(tmp_path / "scratch", run)
    with pytest.raises(HookError, match="cannot be read"):
        unpack(b"no archive" * 100, folder)
    monkeypatch.setattr(pod_files, "MAX_BYTES", 3)
    with pytest.raises(HookError, match="more than the limit"):
        unpack(made((entry("metrics.json"), b"four")), folder)


@given(position=st.integers(0, 2047), value=st.integers(0, 255), cut=st.integers(0, 2048))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_archive_is_read_or_refused(tmp_path: Path, position: int, value: int, cut: int) -> None:
    folder = RunFolder("hook", tmp_path, ())
    for name in set(folder.outputs().values()):
        (tmp_path / name).touch()
    data = bytearray(made((entry("metrics.json"), b"x" * 600)))
    data[position] = value
    try:
        unpack(bytes(data[: len(data) - cut]), folder)
    except HookError:
        return
    assert {path.name for path in tmp_path.iterdir()} <= set(folder.outputs().values())
