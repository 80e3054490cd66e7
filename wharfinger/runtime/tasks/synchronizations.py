"""The record of the objects that hooks have seen. It outlives a restart, so that hooks do not get the same objects again.

With a Synchronization, a hook gets all objects of a binding. For packages with a ``package.yaml``, a restart repeats the
Synchronization only if the objects differ from those that the hook had seen when the last process ended. The package's
recorded state has one checksum for each binding. It covers the configuration of the binding, and the result of the binding's
filter for each object.

The record must never contain objects that a hook has not seen. So it is written when a package's hooks are idle (after their
Synchronization, or when the daemon stops), and the entries of a hook are removed *before* the hook is notified of further
objects. If the process is killed in between, the record has no entry for the hook, and the next process repeats its
Synchronization.
"""

from wharfinger.hooks.config.bindings import KubernetesBinding
from wharfinger.hooks.running.discovery import Hook
from wharfinger.runtime.package.instance import Instance, Tools


def binding_key(hook: Hook, binding: KubernetesBinding) -> str:
    """Return a key such as ``hooks/pods.sh#0``, with the binding's number, because bindings of a hook may have the same
    name.
    """
    number = next(number for number, one in enumerate(hook.config.kubernetes) if one is binding)
    return f"{hook.name}#{number}"


def knows_all(instance: Instance, hook: Hook, binding: KubernetesBinding) -> bool:
    """Return whether a hook has seen exactly the current objects of a binding, in this process or an earlier one."""
    if instance.record is None or instance.hooks.started is None:
        return False
    known = dict(instance.record.state.synchronized)
    return known.get(binding_key(hook, binding)) == instance.hooks.started.monitor(hook, binding).checksum()


async def remember(instance: Instance, tools: Tools) -> None:
    """If no hook of a package runs, record checksums of the objects that its hooks have seen. Raises ClusterError."""
    hooks = instance.hooks.started
    if hooks is None or instance.record is None or instance.running_hooks:
        return
    known = {
        binding_key(hook, binding): hooks.monitor(hook, binding).checksum()
        for hook in instance.files.hooks
        if all(hooks.settled(hook, binding) for binding in hook.config.kubernetes)
        for binding in hook.config.kubernetes
    }
    record = await instance.recorded(tools)
    await record.update(lambda state: state.synchronized_with(known))


async def forget_before_notifying(instance: Instance, hook: Hook) -> None:
    """Remove a hook's entries from the record of seen objects. Call this before the hook is notified of further objects, and
    do not notify the hook if this raises ClusterError.
    """
    if instance.record is None:
        return
    prefix = f"{hook.name}#"
    # The entries are checked within the update, because another update may be in progress.
    await instance.record.update(
        lambda state: state.synchronized_with(
            {key: known for key, known in state.synchronized if not key.startswith(prefix)}
        )
    )
