"""What hooks know of what is there, kept over a restart: who knows it all is not shown it again (DESIGN §7, "Restart policy").

A binding's Synchronization shows its hook everything there is. For packages with a ``package.yaml`` that is done at a restart
only where something differs from what the hook knew when the last process ended: a checksum over the binding and what its
filter makes of each object, kept in the package's record.

The record must never say that a hook knows what it does not. So it is written when a package's hooks are at rest (they were
just synchronised, or the daemon stops), and what it says of a hook is taken out *before* that hook is told anything more. A
process that is killed leaves a record without that hook, which is then shown everything again.
"""

from wharfinger.hooks.config.bindings import KubernetesBinding
from wharfinger.hooks.running.discovery import Hook
from wharfinger.runtime.package.instance import Instance, Tools


def binding_key(hook: Hook, binding: KubernetesBinding) -> str:
    """``hooks/pods.sh#0``: bindings may share their names."""
    number = next(number for number, one in enumerate(hook.config.kubernetes) if one is binding)
    return f"{hook.name}#{number}"


def knows_all(instance: Instance, hook: Hook, binding: KubernetesBinding) -> bool:
    """Whether a hook was told, by this process or an earlier one, just what there is now."""
    if instance.record is None or instance.started is None:
        return False
    known = dict(instance.record.state.synchronized)
    return known.get(binding_key(hook, binding)) == instance.started.monitor(hook, binding).checksum()


async def remember(instance: Instance, tools: Tools) -> None:
    """Record what the hooks of a package know, those that are at rest. Raises ClusterError."""
    hooks = instance.started
    if hooks is None or instance.record is None or instance.running_hooks:
        return
    known = {
        binding_key(hook, binding): hooks.monitor(hook, binding).checksum()
        for hook in instance.hooks
        if all(hooks.settled(hook, binding) for binding in hook.config.kubernetes)
        for binding in hook.config.kubernetes
    }
    record = await instance.recorded(tools.cluster)
    await record.update(lambda state: state.synchronized_with(known))


async def about_to_tell(instance: Instance, hook: Hook) -> None:
    """A hook is about to be told more than the record says it knows. Raises ClusterError, and it must not be told then."""
    if instance.record is None:
        return
    prefix = f"{hook.name}#"
    # Always by way of the record, which takes one at a time: what it is to say may just be being written.
    await instance.record.update(
        lambda state: state.synchronized_with(
            {key: known for key, known in state.synchronized if not key.startswith(prefix)}
        )
    )
