"""What every reader in this part raises: bad input is a :class:`FormatError`, and always permanent.

A reader that lets anything else out has a bug. Trying again does not help; changed input does.
"""


class FormatError(Exception):
    """Foreign data was refused; the message says what it was, where, and why."""


class ArchiveError(FormatError):
    """An archive was refused: not a tar, damaged, over a limit, or with an entry that must not reach the disk."""


class ProgramError(Exception):
    """A foreign program (a jq filter, a conversion) gave no result; its runner's own error is a kind of this.

    ``transient``: trying again without a change can help, as where the worker that ran it died. ``late``: it ran out of time,
    which is transient too, as the machine may have been busy, but is more likely the program's fault.
    """

    transient: bool = False
    late: bool = False
