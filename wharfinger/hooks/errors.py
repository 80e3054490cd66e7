"""The error that a hook could not be run. A hook that ran and failed is an outcome, not an error."""


class HookError(Exception):
    """The hook could not be started, or its output cannot be read.

    ``hook`` is the name of the hook. ``file`` is the environment variable that names the refused file, and is empty if the error
    is not about a file. ``transient`` is true if running the hook again without a change can help.
    """

    def __init__(self, hook: str, why: str, *, file: str = "", transient: bool = False) -> None:
        super().__init__(f"hook {hook}: {file}: {why}" if file else f"hook {hook}: {why}")
        self.hook = hook
        self.file = file
        self.transient = transient
