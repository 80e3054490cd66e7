"""Changes of applied objects by other writers: comparison by field ownership, ignored fields, corrections, and fights.

May import ``records`` and below.
"""
