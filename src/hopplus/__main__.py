"""The program `hopplus`, also `python -m hopplus`."""

import os
import sys


def run() -> None:
    """Run the command line and end the process."""
    try:
        # It takes a second or two, in which a person may change their mind.
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
    import jax

    return jax.distributed.is_initialized()


if __name__ == "__main__":
    run()
