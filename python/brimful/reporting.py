"""How long work reports how far it is."""

from collections.abc import Callable

#: Called about ten times a second, on the calling thread, with the phase, the units done, the
#: units in all (0: unknown) and the seconds since the phase began. An exception that it raises
#: stops the work and comes back from the call.
Progress = Callable[[str, int, int, float], object]
