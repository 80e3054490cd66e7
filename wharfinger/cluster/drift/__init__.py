"""What somebody changed in applied objects: comparing by field ownership, what is ignored, what is corrected, and fights with
another writer.

May import ``records`` and below.
"""
