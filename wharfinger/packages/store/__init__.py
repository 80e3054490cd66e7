"""What was downloaded, on this machine's disk: kept by digest, unpacked once, collected when nobody needs it.

May import ``registry`` and below.
"""
