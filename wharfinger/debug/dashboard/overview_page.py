"""Two pages of the dashboard: one shows the daemon, and its packages as a graph and as a list; the other shows the queues.
Pure.
"""

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from wharfinger.debug.dashboard.blocks import Block, Cell, Facts, Items, Page, Picture, Section, Table, Tone
from wharfinger.debug.dashboard.source import DaemonAnswer
from wharfinger.debug.fields import duration
from wharfinger.debug.listing.packages import ARROW, versions_text
from wharfinger.debug.printing.stage import stage_text, state_counts
from wharfinger.debug.printing.task import task_state_text, task_why_text
from wharfinger.formats.listing import counted
from wharfinger.kube.times import format_time
from wharfinger.runtime.daemon_details import DaemonSnapshot
from wharfinger.runtime.inspector import PackageSnapshot, QueueSnapshot

MOST_DRAWN: Final = 150
"""The number of packages above which a graph is not drawn."""
_TONES: Final = {
    "Ready": Tone.GOOD,
    "Failed": Tone.BAD,
    "Degraded": Tone.BAD,
    "Suspended": Tone.DIM,
    "Disabled": Tone.DIM,
}


def overview_page(whole: DaemonAnswer, find: str, picture: Picture | None) -> Page:
    """Return the first page; ``find`` filters the list of packages, and ``picture`` is None if nothing is drawn."""
    counts = ", ".join(f"{count} {state}" for state, count in state_counts(whole.packages))
    return Page(
        "Packages",
        f"/?find={quote(find)}" if find else "/",
        (
            Section("daemon", "Daemon", (_daemon(whole),)),
            Section("graph", "Dependencies", (_drawn(whole, picture),)),
            Section("packages", "Packages", (_packages(whole.packages, find),)),
        ),
        announcement=f"{counted(len(whole.packages), 'package')}: {counts or 'none'}",
        find=find,
    )


def queues_page(whole: DaemonAnswer) -> Page:
    """Return the page that shows the queues, and the limits that tasks wait for."""
    queues = [package.queue for package in whole.packages]
    total = sum(len(queue.tasks) for queue in queues)
    return Page(
        "Queues",
        "/queues",
        (
            Section("tasks", "Tasks", (tasks_table(queues, with_package=True),)),
            Section("limits", "Limits", (_limits(whole),)),
        ),
        announcement=f"{counted(total, 'task')} in {counted(sum(bool(queue.tasks) for queue in queues), 'queue')}",
    )


def state_cell(state: str) -> Cell:
    """Return the state of a package as a cell."""
    return Cell(state, _TONES.get(state, Tone.WARNING))


def package_href(name: str) -> str:
    """Return the address of the page of a package, relative to the folder of all pages."""
    return f"package?name={quote(name, safe='')}"


def tasks_table(queues: Sequence[QueueSnapshot], *, with_package: bool) -> Table:
    """Return a table of the tasks, one queue after the other, with the next task of each queue first."""
    headers = ("Task", "State", "Attempt", "Queued", "Why")
    rows = []
    for queue in queues:
        for task in queue.tasks:
            bad = Tone.BAD if task.parked else Tone.WARNING if task.error else Tone.PLAIN
            cells = (
                Cell(task.name),
                Cell(task_state_text(task), bad),
                Cell(str(task.attempt)),
                Cell(duration(task.enqueued_s_ago)),
                Cell(task_why_text(task)),
            )
            rows.append((Cell(queue.name, href=package_href(queue.name)), *cells) if with_package else cells)
    return Table(
        "Tasks, the next one of each queue first",
        ("Package", *headers) if with_package else headers,
        tuple(rows),
        "No tasks.",
    )


def _daemon(whole: DaemonAnswer) -> Facts:
    daemon, found = whole.daemon, whole.statistics
    pairs = [
        ("State", _readiness(daemon)),
        ("Version", Cell(daemon.version)),
        ("Cluster", Cell(daemon.cluster)),
        ("Started", Cell(format_time(daemon.started))),
    ]
    if daemon.leader.leader:
        pairs.append(("Leader", Cell(daemon.leader.leader)))
    pairs += [(state, Cell(str(count), state_cell(state).tone)) for state, count in state_counts(whole.packages)]
    if found is not None:
        tasks = found.tasks
        counts = f"{tasks.running} running, {tasks.backing_off} retried later, {tasks.parked} parked"
        pairs.append(("Tasks", Cell(counts, Tone.WARNING if tasks.parked else Tone.PLAIN)))
    pairs += [("Hanging watch", Cell(each, Tone.BAD)) for each in daemon.stale_watches]
    return Facts(tuple(pairs))


def _readiness(daemon: DaemonSnapshot) -> Cell:
    if daemon.draining:
        return Cell("shutting down", Tone.WARNING)
    if daemon.standby:
        return Cell(daemon.standby, Tone.WARNING)
    return Cell("ready", Tone.GOOD) if daemon.ready else Cell("starting", Tone.WARNING)


def _drawn(whole: DaemonAnswer, picture: Picture | None) -> Block:
    if not whole.packages and not whole.nodes:
        return Items((), "No packages: `kubectl apply` an Application or a Module.")
    if picture is not None:
        return picture
    text = (
        f"A graph of more than {MOST_DRAWN} packages is not drawn. The page of a package shows the packages around it."
    )
    return Items((), text)


def _packages(packages: Sequence[PackageSnapshot], find: str) -> Table:
    wanted = find.casefold()
    rows = tuple(
        row
        for row in map(_package_row, packages)
        if not wanted or wanted in " ".join(cell.text for cell in row).casefold()
    )
    headers = ("Name", "State", "Version", "Stage", "Tasks", "Hooks", "Drift", "Message")
    return Table(
        f"Packages that contain “{find}”" if find else "All packages",
        headers,
        rows,
        f"No package contains “{find}”." if find else "No packages.",
    )


def _package_row(package: PackageSnapshot) -> tuple[Cell, ...]:
    parked = sum(task.parked for task in package.queue.tasks)
    failed = sum(bool(hook.last_error) for hook in package.hooks)
    return (
        Cell(package.name, href=package_href(package.name)),
        state_cell(package.state),
        Cell(versions_text(package, ARROW)),
        Cell(stage_text(package)),
        _count(len(package.queue.tasks), parked, "parked"),
        _count(len(package.hooks), failed, "failed"),
        Cell(str(len(package.drift) or ""), Tone.WARNING if package.drift else Tone.PLAIN),
        Cell(package.message),
    )


def _count(number: int, bad: int, word: str) -> Cell:
    if bad:
        return Cell(f"{number} ({bad} {word})", Tone.BAD)
    return Cell(str(number or ""))


def _limits(whole: DaemonAnswer) -> Table:
    slots = whole.statistics.slots if whole.statistics is not None else ()
    rows = tuple(
        (
            Cell(each.kind),
            Cell(f"{each.used} of {each.limit}"),
            Cell(str(each.waiting), Tone.WARNING if each.waiting else Tone.PLAIN),
        )
        for each in slots
    )
    return Table("Limits, and the tasks that wait for them", ("Kind", "In use", "Waiting"), rows, "Not counted yet.")
