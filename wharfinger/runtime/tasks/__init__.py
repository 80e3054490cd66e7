"""The tasks that the queues run for a package: download, install, load, hooks, render, apply, uninstall.

Each task is one step of a pipeline. A task never changes the state of a package itself: it returns its results, or reports them
to its ``Host`` (:mod:`~wharfinger.runtime.package.instance`) while it runs. This folder may import ``package`` and the layers
below it; tasks never call ``core``.
"""
