"""Downloaded packages on this machine's disk: stored by digest, unpacked once, collected when no package needs them.

May import ``registry`` and below.
"""
