"""Programs on the shards of a graph: the methods of a class become one kernel."""
