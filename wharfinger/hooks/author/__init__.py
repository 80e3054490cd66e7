"""The commands for package authors: ``wharfinger hook`` and ``wharfinger package lint``. They need no cluster.

May import all other folders of ``hooks``.
"""
