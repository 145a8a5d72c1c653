"""The backend `brimful` of NetworkX: its functions on graphs larger than memory.

NetworkX finds it by the entry points `networkx.backends` (`interface`) and `networkx.backend_info`
(`info`, which is loaded with NetworkX and loads nothing). The rest of brimful uses it for
`Graph.as_networkx` only, so that brimful works without NetworkX.
"""
