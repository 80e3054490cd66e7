"""The daemon's options for the admission server, and the error if its library is missing."""

import argparse

import pytest

from wharfinger.runtime.admission.endpoint import AdmissionAddressError, Endpoint
from wharfinger.runtime.daemon import admission_options
from wharfinger.runtime.daemon.admission_options import add_admission, admission_endpoint


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_admission(parser)
    return parser.parse_args(arguments)


def test_admission_options_give_an_endpoint() -> None:
    assert admission_endpoint(parsed()) is None
    assert admission_endpoint(parsed("--admission", "h:1")) == Endpoint("h", 1)
    both = parsed("--admission=:1", "--admission-service=a/b")
    assert admission_endpoint(both) == Endpoint("", 1, ("a", "b"))
    pod = parsed("--admission=:1", "--admission-service=a/b", "--admission-pod-ip=10.0.0.7")
    assert admission_endpoint(pod) == Endpoint("", 1, ("a", "b"), "10.0.0.7")
    for alone in ("--admission-service=a/b", "--admission-pod-ip=10.0.0.7"):
        with pytest.raises(
            AdmissionAddressError, match="is used only with --admission; add that option, or leave this one out"
        ):
            admission_endpoint(parsed(alone))
    with pytest.raises(AdmissionAddressError, match="is used only with --admission-service; add that option"):
        admission_endpoint(parsed("--admission=h:1", "--admission-pod-ip=10.0.0.7"))
    with pytest.raises(AdmissionAddressError, match="'pod': expected an IP address"):
        admission_endpoint(parsed("--admission=:1", "--admission-service=a/b", "--admission-pod-ip=pod"))


def test_a_missing_library_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission_options, "LIBRARY", "no_such_library")
    with pytest.raises(AdmissionAddressError, match=r"pip install 'wharfinger\[admission\]'"):
        admission_endpoint(parsed("--admission", "h:1"))
