"""The options of ``wharfinger run`` about its admission server."""

import argparse
from importlib.util import find_spec
from typing import Final

from wharfinger.runtime.admission.endpoint import TIMEOUT_S, AdmissionAddressError, Endpoint, read_endpoint

LIBRARY: Final = "cryptography"


def add_admission(parser: argparse.ArgumentParser) -> None:
    """Add ``--admission``, ``--admission-service`` and ``--admission-pod-ip``."""
    group = parser.add_argument_group(
        "admission",
        "a validating webhook for Applications, Modules and PackageRepositories. It refuses resources that the daemon "
        f"would refuse later. An API server waits up to {TIMEOUT_S} s for the answer of the webhook, and then continues "
        "without it.",
    )
    group.add_argument(
        "--admission",
        default="",
        metavar="HOST:PORT",
        help="serve this webhook, and the webhooks of hooks, on this address; API servers must be able to reach the "
        "address (default: no webhooks)",
    )
    group.add_argument(
        "--admission-service",
        default="",
        metavar="NAMESPACE/NAME",
        help="for a daemon that runs in the cluster: the Service (port 443) through which API servers reach the address of "
        "--admission",
    )
    group.add_argument(
        "--admission-pod-ip",
        default="",
        metavar="IP",
        help="the address of this pod, for a Service without a selector. While the daemon is at work, it makes the address the "
        "only endpoint of the Service. The port of the Service must have the name admission (default: the Service needs a "
        "selector, and also sends requests to daemons on standby, which do not answer)",
    )


def admission_endpoint(args: argparse.Namespace) -> Endpoint | None:
    """Return the endpoint that the options describe; None without --admission. Raises AdmissionAddressError."""
    if not args.admission:
        for option, value in (("service", args.admission_service), ("pod-ip", args.admission_pod_ip)):
            if value:
                raise AdmissionAddressError(
                    f"--admission-{option} is used only with --admission; add that option, or leave this one out"
                )
        return None
    if find_spec(LIBRARY) is None:
        raise AdmissionAddressError(
            f"--admission needs the library {LIBRARY}; install it with pip install 'wharfinger[admission]'"
        )
    return read_endpoint(args.admission, args.admission_service, args.admission_pod_ip)
