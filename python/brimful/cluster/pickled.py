"""Programs and objects as bytes for other processes of a cluster."""

from __future__ import annotations

import pickle
import sys
from typing import TYPE_CHECKING, Any

from brimful.cluster import imported_ray
from brimful.errors import UsageError

if TYPE_CHECKING:
    from brimful.pregel.program import Pregel
    from brimful.program import Program


def pickled_program(program: Program | Pregel, *others: object) -> bytes:
    """Return a program, with the code of its class, and other objects.

    Nodes need not have installed the module of the class.

    Raises:
        MissingPackageError: Ray is not installed.
        UsageError: An attribute of the program cannot be pickled.
    """
    cloudpickle = imported_ray().cloudpickle
    module = sys.modules[type(program).__module__]
    cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps((program, *others)))
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{type(program).__name__} cannot be sent to the workers of a cluster: {error}; its "
            "attributes, and the serializer, must be objects that can be pickled"
        ) from error
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def dumps(value: Any) -> bytes:
    """Return an object of a program as bytes for another process.

    Raises:
        TypeError: The object cannot be pickled.
    """
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError):
        # A class of the module of the program, which this node need not have installed.
        try:
            return bytes(imported_ray().cloudpickle.dumps(value))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise TypeError(
                f"an object of type {type(value).__name__} cannot be sent to another worker "
                f"({error}); use a type that can be pickled"
            ) from error


#: The object of bytes that `dumps` returned.
loads = pickle.loads
