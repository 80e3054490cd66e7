"""The table of commands: for each its name, the module that implements it, and one line of help."""

from typing import Final, NamedTuple


class Command(NamedTuple):
    """One row of the command table: ``module`` is the module of ``wharfinger.<part>`` that contains ``add_<name>``."""

    name: str
    part: str
    help: str
    module: str = "commands"


COMMANDS: Final = (
    Command("run", "runtime", "run the daemon against a cluster", module="daemon.commands"),
    Command(
        "doctor",
        "runtime",
        "check whether this machine and the cluster have everything that the daemon needs",
        module="daemon.doctor_command",
    ),
    Command(
        "plan",
        "runtime",
        "show without a cluster which packages would be on, and in which order",
        module="plan.commands",
    ),
    Command(
        "build", "offline", "print the manifests of a chart, a package or a folder of manifests, without a cluster"
    ),
    Command(
        "diff",
        "offline",
        "show what the next apply of a package would change, or how two versions of a folder of manifests differ",
        module="diff_command",
    ),
    Command(
        "check", "offline", "check manifests by the rules of an API server, without a cluster", module="check_command"
    ),
    Command(
        "test",
        "offline",
        "run the tests of a chart, a package or a folder of manifests, without a cluster",
        module="test_command",
    ),
    Command(
        "tree",
        "offline",
        "list or draw the releases and objects that a folder of manifests builds, without a cluster",
        module="tree_command",
    ),
    Command(
        "cache",
        "offline",
        "show the size of the cache of build, diff and check, or clean up the cache",
        module="cache_command",
    ),
    Command("control-plane", "control_plane", "serve an embedded Kubernetes control plane on loopback"),
    Command("package", "packages", "check a package, push it to a registry, and show it there"),
    Command("repository", "packages", "copy packages to another registry, or to a folder", module="mirror_command"),
    Command("hook", "hooks", "run a hook of a package without a cluster", module="author.commands"),
    Command(
        "get",
        "debug",
        "list the packages, repositories, versions, queues, hooks, objects, watches or pools of a running daemon, or show "
        "which daemon leads",
        module="listing.get_command",
    ),
    Command(
        "install",
        "runtime",
        "install a package from this machine or from a registry, and wait until it is Ready",
        module="installing.commands",
    ),
    Command("uninstall", "runtime", "remove a package, and wait until it is gone", module="installing.commands"),
    Command("reconcile", "runtime", "reconcile a package completely, now", module="installing.request_commands"),
    Command("retry", "runtime", "retry a failed package now", module="installing.request_commands"),
    Command("suspend", "runtime", "suspend all work on a package", module="installing.request_commands"),
    Command("resume", "runtime", "resume the work on a suspended package", module="installing.request_commands"),
    Command(
        "approve",
        "runtime",
        "approve an update that waits for approval",
        module="daemon.approve_command",
    ),
    Command(
        "rollback",
        "runtime",
        "return a package to a former revision of its release",
        module="daemon.rollback_command",
    ),
    Command(
        "dashboard",
        "debug",
        "serve a read-only web page about a running daemon to a browser on this machine",
        module="dashboard.dashboard_command",
    ),
    Command("top", "debug", "show a live view of a running daemon on the terminal", module="top.top_command"),
    Command(
        "describe",
        "debug",
        "print everything about one package of a running daemon, with a remedy if it has a problem",
        module="package.describe_command",
    ),
    Command(
        "wait", "debug", "wait until a package is ready, is gone, or has a condition", module="package.wait_command"
    ),
    Command(
        "logs",
        "debug",
        "print the log lines about a package, and the output of its hooks",
        module="package.logs_command",
    ),
    Command("events", "debug", "print the Kubernetes Events about a package", module="package.events_command"),
    Command("values", "debug", "print the current values of a package", module="package.document_commands"),
    Command(
        "snapshots",
        "debug",
        "print the snapshots that the hooks of a package would get now",
        module="package.document_commands",
    ),
    Command("tasks", "debug", "print the running tasks of a daemon as a tree", module="package.document_commands"),
    Command("profile", "debug", "show what a running daemon spends its time on", module="process_commands"),
    Command("memory", "debug", "show the memory of a running daemon by part", module="process_commands"),
    Command("why", "debug", "explain the state of a package of a running daemon, and name the remedy"),
    Command("history", "debug", "print the decisions that a running daemon made about a package, with the causes"),
    Command(
        "replay",
        "runtime",
        "run the state machines of packages again from a recording, and compare every state",
        module="recording.commands",
    ),
    Command(
        "dump", "debug", "print the complete state of a running daemon, or of one package, in a format for programs"
    ),
    Command("queues", "debug", "show the tasks in the queues of a running daemon"),
    Command(
        "pools",
        "debug",
        "show the pools of a running daemon: idle processes for runs of hooks, hooks that keep running, and pods",
    ),
    Command("scheduler", "debug", "show what the scheduler of a running daemon has decided about each package"),
    Command("graph", "debug", "draw the dependencies between packages of a running daemon", module="graph.commands"),
    Command("statistics", "debug", "show the counters and limits of a running daemon"),
    Command(
        "mcp",
        "debug",
        "serve read-only tools for AI agents (MCP) about a running daemon, over stdin and stdout",
        module="mcp_command",
    ),
    Command("render", "debug", "print the manifests that the next apply of a package would write"),
    Command("validate", "debug", "ask a running daemon whether a package would accept settings"),
)


LIVE_DIFF: Final = Command("diff", "debug", "show what the next apply would change", module="package.diff_command")
"""The command `diff` without ``--against``: it asks a running daemon, and imports nothing from `wharfinger.offline`."""
