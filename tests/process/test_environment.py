"""The environment variables of child processes."""

from wharfinger.process.environment import NO_BYTECODE, child_environment


def test_variables_of_systemd_are_not_inherited() -> None:
    told = {
        "NOTIFY_SOCKET": "/run/n", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "1", "LISTEN_FDS": "1", "LISTEN_PID": "1",
        "LISTEN_FDNAMES": "x",
    }  # fmt: skip
    kept = {"PATH": "/bin", "HTTPS_PROXY": "http://p", "MY_NOTIFY_SOCKET": "x", "LISTENER": "x"}
    assert child_environment({**told, **kept}) == kept
    assert child_environment({**told, **NO_BYTECODE}) == NO_BYTECODE
