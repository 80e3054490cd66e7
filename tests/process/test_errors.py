"""Error messages: each has an object, a reason and a remedy."""

from wharfinger.process.errors import FileBusyError, JournalFileError, LedgerError, ProcessError, SpawnError, StuckError


def test_a_spawn_error_has_a_reason_and_a_remedy() -> None:
    error = SpawnError("helm", "it is not on PATH (/bin)", "install it")

    assert str(error) == "cannot start helm: it is not on PATH (/bin); install it"
    assert (error.program, error.why, error.remedy, error.transient) == (
        "helm",
        "it is not on PATH (/bin)",
        "install it",
        False,
    )


def test_temporary_errors_are_transient() -> None:
    errors: list[ProcessError] = [FileBusyError("hook"), StuckError("hook", 7, 10.0), LedgerError("full")]
    errors.append(JournalFileError("full"))

    assert [error.transient for error in errors] == [True, True, True, True]
    assert "hook (pid 7) did not end within 10 s of SIGKILL" in str(errors[1])
