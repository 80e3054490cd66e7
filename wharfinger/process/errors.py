"""The errors of running a child process. A child that ran and failed is an :class:`Outcome`, not an error.

::

    ProcessError           base; .transient says whether a retry without a change can help
    ├── SpawnError         the program could not be started
    │   └── FileBusyError  another process still has the program open for writing
    ├── StuckError         the process was killed and does not die: it hangs in the kernel
    ├── JournalFileError   the journal of the state folder cannot be opened, read or written
    └── LedgerError        the table of process groups in the journal cannot be opened, read or written
"""


class ProcessError(Exception):
    """The base of the errors of running a child process."""

    transient: bool = False


class SpawnError(ProcessError):
    """A program could not be started; no process of it runs."""

    def __init__(self, program: str, why: str, remedy: str, *, transient: bool = False) -> None:
        super().__init__(f"cannot start {program}: {why}; {remedy}")
        self.program = program
        self.why = why
        self.remedy = remedy
        self.transient = transient


class FileBusyError(SpawnError):
    """Another process has the program open for writing (ETXTBSY); usually only for a moment."""

    def __init__(self, program: str) -> None:
        super().__init__(
            program,
            "another process still has it open for writing",
            "try again when the file is closed",
            transient=True,
        )


class StuckError(ProcessError):
    """A process did not end in time after SIGKILL: it waits in the kernel, usually for a disk or a mount."""

    transient = True

    def __init__(self, program: str, pid: int, seconds: float) -> None:
        super().__init__(
            f"{program} (pid {pid}) did not end within {seconds:g} s of SIGKILL: it hangs in the kernel; "
            "check its state in /proc, and the disk or the mount that it uses"
        )
        self.program = program
        self.pid = pid


class JournalFileError(ProcessError):
    """The journal of the state folder failed: full disk, missing permission, lock held too long, or damage while in use."""

    transient = True


class LedgerError(ProcessError):
    """The ledger of process groups failed, for one of the reasons of JournalFileError."""

    transient = True
