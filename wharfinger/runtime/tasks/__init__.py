"""The tasks that the queues run for a package: download, install, load, hooks, render, apply, uninstall.

Each task is one step of a pipeline. A task returns its results, or reports them to the host while it runs; it never changes a
package itself. May import ``package`` and the layers below it; tasks never call ``core``.
"""
