"""Receipts as text: roles in YAML that can be applied, with the purpose of each role, and the rights that an older version
did not need. Pure.
"""

from collections.abc import Iterator, Mapping

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.terminal_text import printable
from wharfinger.kube.access_rules import Access
from wharfinger.runtime.receipts.receipt import Receipt
from wharfinger.runtime.receipts.rights import MEANINGS, RBAC, Grant, Part, grant_of, rule_lines
from wharfinger.runtime.receipts.subject import Subject


def receipt_text(subject: Subject, receipt: Receipt) -> str:
    """Return the receipt as YAML documents, which are the roles for each part of the package, such as its hooks or its
    removal.
    """
    lines = [
        f"# The rights of the package {subject.name} {subject.version}, as {subject.id.kind} {subject.id}.",
        "# Bind these roles to the ServiceAccount that the package's spec.serviceAccountName names.",
    ]
    if receipt.unready:
        lines += [
            "# The package was applied in the trial, but was not ready. Rights that it needs only once it is ready are missing.",
            f"# Reason: {printable(receipt.unready)}",  # one line, so that the text cannot add a document with a role
        ]
    for part in Part:
        accesses = receipt.rights[part]
        lines += ["---", f"# {part}: {MEANINGS[part]}"]
        if not accesses:
            lines.append("# (no rights)")
        grant = grant_of({part: accesses}, receipt.grant.by_namespace, receipt.names.get(part))
        for number, document in enumerate(_roles(subject, part, grant)):
            lines += (["---"] if number else []) + document
    return "\n".join(lines) + "\n"


def _roles(subject: Subject, part: Part, grant: Grant) -> Iterator[list[str]]:
    for place, accesses in sorted(grant.by_namespace.items()):
        kind = "Role" if place else "ClusterRole"
        where = f", namespace: {place}" if place else ""
        head = [
            f"apiVersion: {RBAC}/v1",
            f"kind: {kind}",
            f"metadata: {{name: {subject.name}-{part}{where}}}",
            "rules:",
        ]
        yield [*head, *(f"  {line}" for line in rule_lines(accesses, grant.names))]


def receipt_json(subject: Subject, receipt: Receipt, growth: Mapping[Part, frozenset[Access]] | None) -> JsonObject:
    """Return the receipt as one JSON object; ``growth`` has the rights that an older version did not need."""
    parts: JsonObject = {
        str(part): [_access(each, receipt.names.get(part, {}).get(each)) for each in sorted(receipt.rights[part])]
        for part in Part
    }
    found: JsonObject = {"package": subject.name, "version": subject.version, "kind": subject.id.kind, "rights": parts}
    if receipt.unready:
        found["notReady"] = receipt.unready
    if growth is not None:
        found["grown"] = {str(part): [_access(each) for each in sorted(more)] for part, more in growth.items()}
    return found


def growth_text(growth: Mapping[Part, frozenset[Access]], old: str) -> str:
    """Return the rights that an older version did not need, as YAML comments. If there are none, return a comment that says
    so.
    """
    if not growth:
        return f"# No rights are needed beyond those of {old}.\n"
    lines = [f"# Rights that {old} did not need:"]
    for part, accesses in growth.items():
        for place in sorted({each.namespace for each in accesses}):
            where = f"in the namespace {place}" if place else "in the cluster"
            lines.append(f"#   {part}, {where}:")
            lines += [f"#     {line}" for line in rule_lines([each for each in accesses if each.namespace == place])]
    return "\n".join(lines) + "\n"


def _access(access: Access, names: frozenset[str] | None = None) -> JsonValue:
    return {
        **({"names": [*sorted(names)]} if names else {}),
        "apiGroup": access.group,
        "resource": access.resource,
        "verb": access.verb,
        "namespace": access.namespace,
    }
