"""What running a hook can raise; a hook that ran and failed is an outcome, not an error."""


class HookError(Exception):
    """The hook could not be started, or what it wrote cannot be read."""
