"""Installs, upgrades, uninstalls and corrections of drift, in which one request fails. Each run lets another request fail. The
final state must always be the same.

As in the daemon, an operation with a transient error is tried again, after the pause that the server asked for, or after five
seconds if it asked for none. The final state consists of all objects, the managers of their fields, and the records. If the
operation itself succeeded in spite of the fault, the records must be identical. If it had to be tried again, there may be
additional failed revisions.
"""

from dataclasses import dataclass, field

import pytest
import trio
from trio.testing import MockClock

from tests.corpus.faults import Call, Fault
from tests.corpus.plainly import leaves, plainly
from tests.corpus.rendered import Charts, Prepared
from tests.corpus.simulated import Simulation, simulate
from tests.corpus.state import State, difference, managers_of, marked, names_of, records_of, state_of, wait_settled
from tests.scale import scaled
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.objects.ownership import is_kept
from wharfinger.cluster.records.release import from_secret
from wharfinger.formats.json.value import JsonObject, JsonValue, find_str
from wharfinger.kube.resource import ObjectKey

pytestmark = pytest.mark.unmeasured

CHART = "assorted"
ATTEMPTS = 6
PAUSE_S = 5.0
SETTLE_S = 120.0
"""The time after which all work other than the operation is done, such as corrections and new watches."""
LIMIT_S = 3600.0


@dataclass(frozen=True, slots=True)
class Ending:
    """The final state after a run. ``errors`` are the errors of the attempts that failed before the operation succeeded."""

    state: State
    managers: State
    records: list[str]
    errors: list[str] = field(default_factory=list)
    calls: tuple[Call, ...] = ()
    hit: bool = True


async def install(at: Simulation, one: Prepared, _two: Prepared) -> None:
    """Install the first version."""
    await at.bring(one)


async def upgrade(at: Simulation, _one: Prepared, two: Prepared) -> None:
    """Upgrade to the second version."""
    await at.bring(two)


async def uninstall(at: Simulation, one: Prepared, _two: Prepared) -> None:
    """Uninstall the release."""
    await at.engine.uninstall(release=one.release, namespace=one.release)


async def repair(at: Simulation, _one: Prepared, _two: Prepared) -> None:
    """Change one object and delete another one as another user. The engine corrects both without being called."""
    secret = ObjectKey(await at.other.resource_type("v1", "Secret"), CHART, CHART)
    deployment = ObjectKey(await at.other.resource_type("apps/v1", "Deployment"), CHART, CHART)
    image: JsonValue = "registry.example/else:9"
    patch: JsonObject = {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": image}
    await at.other.json_patch(deployment, [patch])
    await at.other.delete(secret)


OPERATIONS = {"install": install, "upgrade": upgrade, "uninstall": uninstall, "repair": repair}


async def run(operation: str, charts: Charts, fault: tuple[Call, Fault] | None = None) -> Ending:
    """Run an operation with at most one fault, and return the final state."""
    one, two = charts(CHART)
    errors: list[str] = []
    with trio.fail_after(LIMIT_S):
        async with simulate(CHART, armed=operation == "install", fault=fault) as at:
            if operation != "install":
                await at.bring(one)
                if operation != "upgrade":
                    await at.bring(two)
                    await trio.sleep(SETTLE_S)
                at.network.arm(fault)
            for _ in range(ATTEMPTS):
                try:
                    await OPERATIONS[operation](at, one, two)
                    break
                except ClusterError as error:
                    errors.append(f"{type(error).__name__}{'' if error.transient else ' for good'}: {error}")
                    assert error.transient, errors
                    await trio.sleep(error.retry_after_s or PAUSE_S)
            else:
                raise AssertionError(errors)
            await trio.sleep(SETTLE_S)
            await wait_settled(at.plane.backend)
            at.network.disarm()
            history = [from_secret(secret) for secret in records_of(at.plane.backend, CHART)]
            return Ending(
                state_of(at.plane.backend),
                managers_of(at.plane.backend),
                [f"{one.revision} {one.status} {hash((one.manifest, str(one.hooks)))}" for one in history],
                errors,
                tuple(at.network.calls),
                at.network.hit,
            )


def compared(ending: Ending, undisturbed: Ending) -> list[str]:
    """Return the differences from the run without a fault."""
    said = difference(ending.state, undisturbed.state)
    said += [f"managers: {line}" for line in difference(ending.managers, undisturbed.managers)]
    records = ending.records
    if ending.errors:
        # Failed attempts leave additional revisions, so only the other revisions are compared.
        last = [record.split(" ", 1)[1] for record in records if " failed " not in record]
        wanted = [record.split(" ", 1)[1] for record in undisturbed.records]
        if last != wanted:
            said.append(f"records: {records}")
    elif records != undisturbed.records:
        said.append(f"records: {records}, undisturbed: {undisturbed.records}")
    return said


def check(operation: str, ending: Ending, charts: Charts) -> None:
    """Check that the final state of a run without a fault is the wanted one."""
    one, two = charts(CHART)
    wanted = {"install": one.rendered.objects, "uninstall": ()}.get(operation, two.rendered.objects)
    stays = {name for name, obj in ending.state.items() if is_kept(obj) or name.startswith("PersistentVolumeClaim ")}
    assert marked(ending.state) == (names_of(wanted, CHART) & ending.state.keys()) | stays
    assert len(marked(ending.state)) == (len(wanted) or len(stays))
    assert len(ending.records) == {"install": 1, "uninstall": 0}.get(operation, 2)
    images = [
        find_str(obj, "spec", "template", "spec", "containers", 0, "image")
        for name, obj in ending.state.items()
        if name.startswith("Deployment")
    ]
    assert images == [f"registry.example/assorted:{ {'install': 1}.get(operation, 2) }"] * (operation != "uninstall")
    assert ending.errors == []


def sampled(calls: list[Call], fault: Fault) -> list[Call]:
    """Return a sample of the calls, which is a different one for each fault."""
    wanted = scaled(len(calls), 1)
    start = list(Fault).index(fault)
    step = max(len(calls) // max(wanted, 1), 1)
    return [calls[(start + step * at) % len(calls)] for at in range(min(wanted, len(calls)))]


@pytest.fixture(scope="module")
def endings() -> dict[str, Ending]:
    """Return a cache of the final states of operations without a fault."""
    return {}


@pytest.mark.sampled(16)
@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("operation", OPERATIONS)
@plainly
async def test_a_fault_changes_nothing_in_the_end(
    operation: str, fault: Fault, charts: Charts, endings: dict[str, Ending], autojump_clock: MockClock
) -> None:
    if operation not in endings:
        endings[operation] = await run(operation, charts)
        check(operation, endings[operation], charts)
    undisturbed = endings[operation]
    possible = sorted({call for call in undisturbed.calls if fault in call.faults()})
    failures: dict[str, list[str]] = {}
    for call in sampled(possible, fault):
        try:
            ending = await run(operation, charts, (call, fault))
        except (AssertionError, ClusterError, trio.TooSlowError) as error:
            failures[str(call)] = [f"{type(error).__name__}: {error}"]
            continue
        except BaseExceptionGroup as group:
            failures[str(call)] = [f"{type(error).__name__}: {error}" for error in leaves(group)]
            continue
        if said := compared(ending, undisturbed):
            failures[str(call)] = [*said, f"after {ending.errors}"]
    assert not failures, "\n".join(f"{call}: {line}" for call, said in failures.items() for line in said)
