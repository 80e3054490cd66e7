"""The errors of the readers in ``wharfinger.formats``.

A reader of foreign data raises a :class:`FormatError` for bad input. The error is permanent: a retry with the same input fails
again. A reader that raises another error for bad input has a bug.
"""


class FormatError(Exception):
    """Foreign data was refused; the message names the data, the place of the fault, and the reason."""


class ArchiveError(FormatError):
    """An archive was refused: not a tar, damaged, over a limit, or with an entry that must not reach the disk."""


class ProgramError(Exception):
    """A foreign program, such as a jq filter or a CEL expression, gave no result. Modules that run programs raise subclasses.

    ``transient`` is True if a retry without a change can help, for example if the worker that ran the program has died.
    ``late`` is True if the program ran out of time. Such an error is transient too, because the machine may have been busy, but
    the program itself is the more likely cause.
    """

    transient: bool = False
    late: bool = False
