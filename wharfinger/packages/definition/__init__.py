"""What a package says of itself: package.yaml, the layouts of folders, requirements, conversions of settings, and definitions
of custom resources it brings.

May import ``charts`` and below.
"""
