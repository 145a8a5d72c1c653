"""The machine code of kernels: compiled by Numba, and loaded without Numba.

Numba takes memory in which a run within a hard limit would keep pages of its graph. The linker of
LLVM takes a seventh of that. Invariant: code that needs more of Numba than its functions in C is
not linked, because only Numba can run it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from importlib import import_module
from types import FunctionType
from typing import Any, NamedTuple

from brimful.kernels.interface import FAILED

#: The function of the machine code that the engine calls.
_ENTRY = "brimful_kernel"
#: Variables of Numba's modules that hold Python objects begin with this name.
_ENVIRONMENT = "_ZN08NumbaEnv"
#: Without the entry points for Python and C, which take a quarter of the time of a compilation.
_INTERNAL = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def internal(
    function: Callable[..., Any], *, inline: bool = False, checks_bounds: bool = False
) -> Any:
    """Return a function of Numba that only compiled code can call; Python must not.

    `checks_bounds`: an index beyond an array is an IndexError. Else it reads other memory.
    """
    nb: Any = import_module("numba")
    return nb.njit(forceinline=inline, boundscheck=checks_bounds, **_INTERNAL)(function)


def _in_llvm(function: FunctionType, arguments: list[Any], returned: Any) -> Any:
    """Compile a function to a module of LLVM, in which it becomes a part of those that call it."""
    compiler: Any = import_module("numba.core.compiler")
    target = import_module("numba.core.registry").cpu_target
    flags = compiler.Flags()
    target.options.parse_as_flags(flags, {"nopython": True, "forceinline": True, **_INTERNAL})
    flags.no_compile = True
    contexts = target.typing_context, target.target_context
    return compiler.compile_extra(*contexts, function, tuple(arguments), returned, flags, {})


class MachineCode(NamedTuple):
    """An object file with a kernel, and the names of Numba's functions in C that it calls."""

    helpers: tuple[str, ...]
    data: bytes


class Loaded:
    """Machine code in memory, which lives as long as the engine may call it."""

    def __init__(self, code: MachineCode) -> None:
        """Link the code.

        Raises:
            RuntimeError: The code needs a function or variable that is not there.
        """
        llvm: Any = import_module("llvmlite.binding")
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        library = llvm.JITLibraryBuilder().add_object_img(code.data).add_current_process()
        if code.helpers:
            # Registers them.
            import_module("numba.core.registry").cpu_target.target_context.refresh()
        for name in code.helpers:
            address = llvm.address_of_symbol(name)
            if address is None:
                raise RuntimeError(f"Numba has no {name}")
            library.import_symbol(name, address)
        linker = llvm.create_lljit_compiler(suppress_errors=True)
        self._library = library.export_symbol(_ENTRY).link(linker, _ENTRY)
        self.address: int = self._library[_ENTRY]


class Compiled:
    """A kernel in the memory of Numba, which lives as long as the engine may call it."""

    def __init__(
        self, kernel: FunctionType, finish: FunctionType, context: Any, progress: Any
    ) -> None:
        """Compile `kernel(context, progress)`, which may raise an exception, and `finish`.

        `finish(context, progress, has_failed)` is called in any case, and returns the status. A
        record of the type `progress` is memory for both, which LLVM keeps in registers: both become
        part of one function of C. This function meets the exceptions of the kernel. In a block with
        `try`, Numba makes a branch of each operation, which takes four times as long to compile.
        """
        nb: Any = import_module("numba")
        ir: Any = import_module("llvmlite.ir")
        lock = import_module("numba.core.compiler_lock").global_compiler_lock
        types, status = [nb.from_dtype(one) for one in (context, progress)], ir.IntType(32)
        with lock:
            work = _in_llvm(kernel, types, nb.none)
            end = _in_llvm(finish, [*types, nb.boolean], nb.int32)
            in_numba = work.target_context
            self._library = in_numba.codegen().create_library(_ENTRY)
            module = self._library.create_ir_module(_ENTRY)
            pointer = in_numba.get_value_type(types[0])
            entry = ir.Function(module, ir.FunctionType(status, [pointer]), _ENTRY)
            builder = ir.IRBuilder(entry.append_basic_block())

            def called(found: Any, *arguments: Any) -> tuple[Any, Any]:
                self._library.add_linking_library(found.library)
                returned: tuple[Any, Any] = in_numba.call_conv.call_function(
                    builder,
                    in_numba.declare_function(module, found.fndesc),
                    found.signature.return_type,
                    found.signature.args,
                    arguments,
                )
                return returned

            words = builder.alloca(ir.ArrayType(ir.IntType(64), progress.itemsize // 8))
            shared = builder.bitcast(words, in_numba.get_value_type(types[1]))
            call, _ = called(work, *entry.args, shared)
            call, returned = called(end, *entry.args, shared, builder.not_(call.is_ok))
            builder.ret(builder.select(call.is_ok, returned, ir.Constant(status, FAILED)))
            self._library.add_ir_module(module)
            self._library.finalize()
            #: The function of C. All kernels have one name, so another thread must not add its
            #: own before this one is found.
            self.address: int = self._library.get_pointer_to_function(_ENTRY)

    def machine_code(self) -> MachineCode:
        """Return the kernel for other processes of this machine."""
        module = self._library._final_module.clone()
        for variable in module.global_variables:
            if variable.name.startswith(_ENVIRONMENT):
                # Without a value: code that uses the variable cannot be linked.
                variable.linkage = "available_externally"
        process = ctypes.CDLL(None)
        declared = [
            one.name
            for one in (*module.functions, *module.global_variables)
            if one.is_declaration and not one.name.startswith("llvm.")
        ]
        helpers = tuple(name for name in declared if not hasattr(process, name))
        return MachineCode(helpers, self._library.codegen._tm.emit_object(module))
