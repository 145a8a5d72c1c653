"""The backend `brimful` of NetworkX: its functions on graphs larger than memory.

NetworkX finds it by the entry points `networkx.backends` (`interface`) and `networkx.backend_info`
(`info`). Nothing else of brimful imports this package, and only this package imports NetworkX.
"""
