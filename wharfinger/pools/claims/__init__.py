"""The claim scheduler: requests on one side, idle members of a pool on the other, and a claim for each pair.

A pure machine decides which request gets which member, and a shell sends the claims to a backend. The code here does not know
whether a member is a process or a pod; only the backends know. May import no other folder of ``pools``.
"""
