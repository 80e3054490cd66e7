"""The tasks that the queues run for a package: download, install, load, hooks, render, apply, uninstall.

Each task is one step of a pipeline; it changes an instance and reports to the host. May import ``package`` and below;
tasks never call the core.
"""
