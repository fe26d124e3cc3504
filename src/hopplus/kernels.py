"""What kernels that are written for a GPU have in common. Wherever they have no place, XLA makes
kernels of the same equations."""

import warnings
from collections.abc import Callable
from typing import Any

import jax

failures: list[str] = []  # of kernels that this process did not get to compile


def on_gpu() -> bool:
    return jax.default_backend() == "gpu"


def has_room(function: Callable[..., Any], *shapes: Any) -> bool:
    """Whether this machine's chip has room for a kernel of such shapes, which nothing
    but its compiler knows. Whatever else is wrong is said, and XLA's are taken."""
    try:
        jax.jit(function).lower(*shapes).compile()
    except Exception as error:  # as many kinds of them as there are compilers
        if not is_out_of_memory(error):
            failures.append(str(error))
            warnings.warn(f"a kernel does not compile, XLA's are taken: {error}", stacklevel=2)
        return False
    return True


def is_out_of_memory(error: Exception) -> bool:
    return "RESOURCE_EXHAUSTED" in str(error)


def triton_options(warps: int) -> dict[str, Any]:
    """Options of `pallas_call` on a GPU, for programs of so many warps."""
    from jax.experimental.pallas import triton  # others need not have it

    return {"compiler_params": triton.CompilerParams(num_warps=warps, num_stages=1)}
