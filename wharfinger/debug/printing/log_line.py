"""One line of the daemon's log about a package, as text that is safe to print on a terminal. Pure."""

from wharfinger.formats.terminal_text import printable
from wharfinger.kube.times import format_exact_time
from wharfinger.runtime.package_details import LogLineSnapshot


def log_line_text(line: LogLineSnapshot) -> str:
    """Return a log line as text: its time, its level and its message."""
    return f"{format_exact_time(line.time)} {printable(line.level.upper()):<7} {printable(line.message)}"
