"""The page of a daemon for a browser on the same machine (`wharfinger dashboard`): a separate process that queries the debug
socket, and serves HTML to the browser that has the one-time token.
"""
