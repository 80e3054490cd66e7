"""The requests that a handler gets."""

from wharfinger.httpd.messages import Request


def test_the_last_of_repeated_parameters_counts() -> None:
    request = Request("GET", "/", {"a": ("1", "2"), "empty": ("",)}, {}, b"")
    assert request.arg("a") == "2"
    assert request.arg("empty", "default") == ""
    assert request.arg("none") == ""
    assert request.arg("none", "default") == "default"
