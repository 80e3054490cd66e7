"""What folders of several groups use: what an admission plugin is, the cells that tables share, and small helpers for
defaults.

The lowest room of ``api``.
"""
