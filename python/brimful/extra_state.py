"""The data that checkpoints of programs hold besides vertices."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from brimful.errors import UsageError
from brimful.pregel.steps import PregelSteps

if TYPE_CHECKING:
    from brimful.adapted import Totals


def extra_state(
    steps: PregelSteps | Totals, dumps: Callable[[Any], bytes], loads: Callable[[bytes], Any]
) -> tuple[Callable[[], str], Callable[[str], None]] | None:
    """Return the calls by which checkpoints save and restore the data apart from the vertices.

    Raises:
        UsageError: The serializer cannot write it.
    """
    if isinstance(steps, PregelSteps) and not steps.has_extra_state:
        return None

    def save() -> str:
        try:
            return base64.b64encode(dumps(steps.saved())).decode()
        except TypeError as error:
            raise UsageError(
                f"aggregators and worker context cannot be in a checkpoint: {error}"
            ) from error

    def restore(text: str) -> None:
        steps.restore(loads(base64.b64decode(text)))

    # Refuses the run before it begins.
    save()
    return save, restore
