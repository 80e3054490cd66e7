"""The errors of the debug socket, its clients and its listeners. Each message names what failed, where, why, and the remedy."""


class DebugError(Exception):
    """Inspecting a daemon failed; the message is one line for the user."""


class DebugSocketError(DebugError, OSError):
    """A daemon cannot open its debug socket. The class is an OSError, so that callers treat it like the error of any listener."""


class MetricsAddressError(DebugError, OSError):
    """A daemon cannot listen on the address for its metrics. The class is an OSError, so that callers handle it like the
    failure of any other listener.
    """


class NoDaemonError(DebugError):
    """No daemon answers on a socket, or access to the socket is denied."""


class DebugAnswerError(DebugError):
    """A daemon's answer cannot be read by this client."""
