"""The record of the objects that hooks know. It outlives a restart, so that hooks are not shown the same objects again (DESIGN
§7, "Restart policy").

A binding's Synchronization shows its hook all objects. For packages with a ``package.yaml`` this is done after a restart only if
the objects differ from those that the hook knew when the last process ended. The package's record has a checksum of the objects
that a hook knows: over the binding, and over the results of its filter for each object.

The record must never claim that a hook knows more than it does. So it is written when a package's hooks are idle (they were
just synchronized, or the daemon stops), and the entry of a hook is removed *before* the hook is notified of anything more. If the
process is killed in between, the record lacks that hook, and the hook is shown everything again.
"""

from wharfinger.hooks.config.bindings import KubernetesBinding
from wharfinger.hooks.running.discovery import Hook
from wharfinger.runtime.package.instance import Instance, Tools


def binding_key(hook: Hook, binding: KubernetesBinding) -> str:
    """Return a key like ``hooks/pods.sh#0``, with the binding's number, because bindings of a hook may have the same name."""
    number = next(number for number, one in enumerate(hook.config.kubernetes) if one is binding)
    return f"{hook.name}#{number}"


def knows_all(instance: Instance, hook: Hook, binding: KubernetesBinding) -> bool:
    """Return whether a hook was shown, by this process or an earlier one, exactly the current objects."""
    if instance.record is None or instance.hooks.started is None:
        return False
    known = dict(instance.record.state.synchronized)
    return known.get(binding_key(hook, binding)) == instance.hooks.started.monitor(hook, binding).checksum()


async def remember(instance: Instance, tools: Tools) -> None:
    """Record what the idle hooks of a package know. Raises ClusterError."""
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
    """Remove a hook's entry from the record before the hook is notified of more objects. Raises ClusterError; in that case, the
    hook must not be notified.
    """
    if instance.record is None:
        return
    prefix = f"{hook.name}#"
    # Always update through the record, which serializes updates: another one may be in progress.
    await instance.record.update(
        lambda state: state.synchronized_with(
            {key: known for key, known in state.synchronized if not key.startswith(prefix)}
        )
    )
