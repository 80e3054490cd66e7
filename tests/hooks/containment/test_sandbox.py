"""The command line of bubblewrap. Its effect is tested with real hooks (test_hostile_hooks.py)."""

from itertools import pairwise
from pathlib import Path

from wharfinger.hooks.containment.sandbox import SCRATCH_BYTES, sandboxed


def test_folders_are_hidden_before_paths_inside_are_shown() -> None:
    words = sandboxed(
        Path("/usr/bin/bwrap"),
        state_dir=Path("/var/lib/w"),
        shown=(Path("/var/lib/w/store/trees/ab"),),
        writable=Path("/var/lib/w/scratch/run"),
        extra_binds={"/shell_lib.sh": Path("/opt/lib.sh")},
        cwd=Path("/var/lib/w/store/trees/ab/package"),
    )
    joined = " ".join(words)
    places = [
        joined.index(part)
        for part in (
            "--ro-bind /var /var ",
            "--tmpfs /tmp ",
            "--tmpfs /var/tmp ",
            "--tmpfs /var/lib/w ",
            "--ro-bind /var/lib/w/store/trees/ab /var/lib/w/store/trees/ab ",
            "--bind /var/lib/w/scratch/run /var/lib/w/scratch/run ",
            "--ro-bind /opt/lib.sh /shell_lib.sh ",
            "--remount-ro / ",
            "--chdir /var/lib/w/store/trees/ab/package --",
        )
    ]
    assert places == sorted(places)
    assert words[0] == "/usr/bin/bwrap"
    assert words[-1] == "--"
    assert "--unshare-pid" in words
    assert "--unshare-net" not in words
    assert "--die-with-parent" not in words


def test_links_in_the_root_stay_links_and_special_folders_are_not_bound() -> None:
    words = sandboxed(Path("/b"), state_dir=None, shown=(), writable=None, extra_binds={}, cwd=Path("/"))
    links = {following for word, following in pairwise(words) if word == "--symlink"}
    assert links == {str(entry.readlink()) for entry in Path("/").iterdir() if entry.is_symlink()}
    assert "--bind" not in words
    assert not any(first == "--ro-bind" and second in {"/proc", "/dev", "/tmp"} for first, second in pairwise(words))


def test_daemon_socket_is_covered_in_visible_folders() -> None:
    def words(socket: str) -> str:
        return " ".join(
            sandboxed(
                Path("/b"),
                state_dir=Path("/var/lib/w"),
                shown=(),
                writable=None,
                extra_binds={},
                cwd=Path("/"),
                socket=Path(socket),
            )
        )

    assert "--ro-bind /dev/null /run/w/debug.sock " in words("/run/w/debug.sock")
    for hidden in ("/var/lib/w/run/debug.sock", "/tmp/debug.sock", "/var/tmp/debug.sock"):
        assert hidden not in words(hidden)


def test_temporary_file_systems_of_a_sandbox_are_limited() -> None:
    """The temporary file systems are in memory, and no limit of a process counts them, so each has a size limit."""
    words = sandboxed(Path("/b"), state_dir=Path("/var/lib/w"), shown=(), writable=None, extra_binds={}, cwd=Path("/"))
    made = [index for index, word in enumerate(words) if word == "--tmpfs"]
    assert [words[index + 1] for index in made] == ["/tmp", "/var/tmp", "/var/lib/w"]
    assert all(words[index - 2 : index] == ("--size", str(SCRATCH_BYTES)) for index in made)
