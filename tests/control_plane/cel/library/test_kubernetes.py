"""CEL functions of Kubernetes: quantities, versions, IP addresses, URLs and formats."""

import pytest

from tests.control_plane.support.cel_evaluating import value_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("quantity('1Gi').compareTo(quantity('1G'))", 1),
        (
            "quantity('x')",
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        ("semver('1.2.3').minor()", 2),
        ("semver('x')", "No Major.Minor.Patch elements found"),
        ("semver('01.2.3')", 'Major number must not contain leading zeroes "01"'),
        ("semver('a.2.3')", 'Invalid character(s) found in major number "a"'),
        ("semver('')", "Version string empty"),
        ("cidr('10.0.0.0/8').containsIP(ip('10.1.1.1'))", True),
        ("string(cidr('10.0.0.1/8').masked())", "10.0.0.0/8"),
        ("cidr('10.0.0.1/8').ip() == ip('10.0.0.1')", True),
        ("url('https://a:1/b?c=d').getQuery()['c']", ["d"]),
        ("isURL('x')", False),
        ("format.dns1123Label().validate('A').hasValue()", True),
        ("format.named('labelValue').value().validate('a').hasValue()", False),
        ("format.named('x').hasValue()", False),
    ],
)
def test_kubernetes_functions_return_values_or_errors(text: str, value: object) -> None:
    assert value_of(text) == value
