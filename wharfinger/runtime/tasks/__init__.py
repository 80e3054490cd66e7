"""The tasks that the queues run for a package: download, install, load, hooks, render, apply, uninstall.

Each task is one step of a pipeline. It returns what came of it, or reports it to the host on its way; it never changes a package.
May import ``package`` and below; tasks never call the core.
"""
