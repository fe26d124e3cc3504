"""The program `hopplus`, also `python -m hopplus`."""

import os
import sys


def run() -> None:
    """Run the command line and end the process."""
    try:
        # It takes half a second, in which a person may change their mind.
        from hopplus.cli import main

        status = main()
    except KeyboardInterrupt:
        print("hopplus: stopped", file=sys.stderr)
        status = 130
    if status and (status == 130 or _is_left()):
        # Compilation may still be under way in other threads; tearing the interpreter down under
        # them can crash it. And JAX would wait for processes that in turn wait for this one.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


def _is_left() -> bool:
    """Whether other processes are still connected with this one."""
    jax = sys.modules.get("jax")  # a wrong option is found before it is needed
    return jax is not None and bool(jax.distributed.is_initialized())


if __name__ == "__main__":
    run()
