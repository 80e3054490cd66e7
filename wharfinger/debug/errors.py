"""What goes wrong between a daemon and the people who look into it: what happened, to which socket, why, what to do."""


class DebugError(Exception):
    """Looking into a daemon failed; the message is one line for a person."""


class DebugSocketError(DebugError, OSError):
    """A daemon cannot open its debug socket. An OSError, as any listener's, for daemons that do not know this module."""


class MetricsAddressError(DebugError, OSError):
    """A daemon cannot listen for scrapers of its metrics. An OSError for the same reason."""


class NoDaemonError(DebugError):
    """No daemon answers on a socket, or it does not let us ask."""


class DebugAnswerError(DebugError):
    """A daemon answers what this client does not understand."""
