"""An extension of Griffe: the examples that end a docstring get a section, as it expects one."""

import griffe


class Examples(griffe.Extension):
    """Puts `Examples:` before the first `>>>` of each docstring."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Change the docstring of an object before it is parsed."""
        if obj.docstring is None:
            return
        lines = obj.docstring.value.splitlines()
        start = next((at for at, line in enumerate(lines) if line.startswith(">>>")), None)
        if start is not None:
            examples = [f"    {line}" if line else "" for line in lines[start:]]
            obj.docstring.value = "\n".join([*lines[:start], "Examples:", *examples])
