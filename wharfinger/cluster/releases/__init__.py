"""Releases as a whole: the engine with install, upgrade and uninstall, Helm's hooks, the look before the first write, and
charts that look into the cluster.

The highest room; it may import all others.
"""
