"""NetworkX's functions, one module a family; `brimful.networkx.info` lists them.

Each has the parameters of NetworkX's function of its name, whose documentation describes them.
"""
