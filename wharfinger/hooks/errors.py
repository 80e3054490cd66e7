"""The error for hooks that cannot be loaded or run, or whose results are refused.

If a hook runs for a binding and fails, for example with an exit status, no error is raised: the outcome of the run reports the
failure.
"""


class HookError(Exception):
    """The hook cannot be loaded or run, or its results are refused.

    ``hook`` is the name of the hook. ``file`` is the environment variable that names the refused file, and is empty if the error
    is not about a file. ``transient`` is true if running the hook again without a change can help.
    """

    def __init__(self, hook: str, why: str, *, file: str = "", transient: bool = False) -> None:
        super().__init__(f"hook {hook}: {file}: {why}" if file else f"hook {hook}: {why}")
        self.hook = hook
        self.file = file
        self.transient = transient
