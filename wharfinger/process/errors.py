"""The errors of running a child process. A child that ran and failed is an :class:`Outcome`, not an error.

::

    ProcessError           base; .transient says whether trying again without a change can help
    ├── SpawnError         the program could not be started
    │   └── FileBusyError  another process still has it open for writing
    ├── StuckError         it was killed and does not die: it hangs in the kernel
    ├── JournalFileError   the journal of the state folder cannot be opened, read or written
    └── LedgerError        its table of process groups cannot be opened, read or written
"""


class ProcessError(Exception):
    """Base of all errors of this part."""

    transient: bool = False


class SpawnError(ProcessError):
    """A program could not be started; nothing of it runs."""

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
            program, "another process is still writing it", "try again when the file is closed", transient=True
        )


class StuckError(ProcessError):
    """SIGKILL did not end a process within the time allowed: it waits in the kernel, mostly for a disk or a mount."""

    transient = True

    def __init__(self, program: str, pid: int, seconds: float) -> None:
        super().__init__(
            f"{program} (pid {pid}) did not end within {seconds:g} s of SIGKILL: it hangs in the kernel; "
            "look at its state in /proc and at the disk or the mount it uses"
        )
        self.program = program
        self.pid = pid


class JournalFileError(ProcessError):
    """The journal of the state folder failed: disk full, no permission, locked for too long, damaged while in use."""

    transient = True


class LedgerError(ProcessError):
    """The ledger of process groups failed, for one of the journal's reasons."""

    transient = True
