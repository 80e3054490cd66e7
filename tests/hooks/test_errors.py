from wharfinger.hooks.errors import HookError


def test_an_error_names_the_hook_and_the_file() -> None:
    error = HookError("10-labels.sh", "more than the limit", file="METRICS_PATH")
    assert str(error) == "hook 10-labels.sh: METRICS_PATH: more than the limit"
    assert (error.hook, error.file, error.transient) == ("10-labels.sh", "METRICS_PATH", False)


def test_an_error_that_concerns_no_file_names_only_the_hook() -> None:
    error = HookError("10-labels.sh", "cannot start", transient=True)
    assert (str(error), error.file, error.transient) == ("hook 10-labels.sh: cannot start", "", True)
