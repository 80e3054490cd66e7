"""The claim scheduler: it pairs requests with idle members of a pool, and makes a claim for each pair.

A pure machine decides which request gets which member. The *shell* around it sends the claims to a backend. The code here does
not know whether a member is a process or a pod; only the backends know. This folder may import no other folder of ``pools``.
"""
