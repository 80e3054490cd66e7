"""The common parts of all controllers: the work queue, the view of the cluster, helpers, and simulation annotations.

The lowest folder of ``controllers``.
"""
