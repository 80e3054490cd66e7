"""The page of a daemon for a browser on the same machine (`wharfinger dashboard`): a process of its own that asks the debug
socket, and serves HTML to whoever has the one-time token.
"""
