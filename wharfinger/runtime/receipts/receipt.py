"""The receipt of a package: the rights that it needs. They are recorded in a trial with all rights, and proved in a trial
with exactly the recorded rights.

A request in the proof may be refused although the recorded rights allow it: only an account that has all rights of a role may
grant the role to others. Then the rights of this role are added to the receipt, and the proof is repeated. At most ROUNDS
proofs are made.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from wharfinger.kube.access_rules import Access
from wharfinger.packages.errors import PackageError
from wharfinger.runtime.receipts.rights import Grant, Names, Part, all_names, grant_of, granted_by, named, needed
from wharfinger.runtime.receipts.trial import OpenServer, Plan, Programs, Record, run_trial

ROUNDS: Final = 4
FIRST_NAMESPACES: Final = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})


class NotEnoughError(PackageError):
    """A package does not work with the rights that its trial has recorded. The message describes what failed."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """The rights that each part of a package needs (``rights``), and the roles that grant them (``grant``). The package has
    worked in a trial in which its account had only these roles.
    """

    rights: Mapping[Part, frozenset[Access]]
    grant: Grant
    names: Mapping[Part, Names] = field(default_factory=dict)
    """The names of the objects to which rights are restricted; empty if no restriction was requested."""
    unready: str = ""
    """The reason why the package was not ready in the trial; "" if it was ready. If it was not
    ready, the receipt lacks the rights that the package needs only once it is ready.
    """


async def make_receipt(
    plan: Plan, programs: Programs, open_server: OpenServer, folder: Path, *, with_names: bool = False
) -> Receipt:
    """Return the receipt of a package; trials run in folders below ``folder``.

    With ``with_names``, rights are restricted to the objects that the package used in the first trial. If a later trial (a
    proof) shows that a restricted right is not enough, the restriction of this right is removed.

    Raises NotEnoughError, TrialError, PackageError, ClusterError, and the errors of a daemon that cannot start.
    """
    user = plan.subject.account.user
    record = await run_trial(plan, None, programs, open_server, folder / "record")
    rights = {part: needed(record.requests.get(part, ()), user) for part in Part}
    names = {part: named(record.requests.get(part, ()), user) if with_names else {} for part in Part}
    for number in range(ROUNDS):
        places = {*FIRST_NAMESPACES, plan.subject.id.namespace}
        grant = grant_of(rights, places, all_names(rights, names))
        proof = await run_trial(plan, grant, programs, open_server, folder / f"proof-{number}")
        if not proof.failure:
            return Receipt(rights, grant, names if with_names else {}, record.unready)
        more = _granted(proof, user)
        wider = {request.refused() for _, request in proof.refusals(user)} & grant.names.keys()
        wider |= {access for accesses in more.values() for access in accesses}
        names = {part: {each: own for each, own in known.items() if each not in wider} for part, known in names.items()}
        if not any(more.values()) and not wider:
            raise NotEnoughError(
                f"{plan.subject.id}: the package failed in a trial with only the recorded rights: {proof.failure}"
            )
        rights = {part: rights[part] | more.get(part, frozenset()) for part in Part}
    raise NotEnoughError(
        f"{plan.subject.id}: the recorded rights are still not enough after {ROUNDS} trials, each of which added further rights"
    )


def _granted(proof: Record, user: str) -> dict[Part, frozenset[Access]]:
    """Return the rights that the account needs only because it grants them to others, by part."""
    found: dict[Part, frozenset[Access]] = {}
    for part, request in proof.refusals(user):
        found[part] = found.get(part, frozenset()) | granted_by(request)
    return found
