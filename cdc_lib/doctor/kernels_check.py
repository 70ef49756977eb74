"""Says whether the first drain of this machine compiles kernels."""

from __future__ import annotations

from collections.abc import Iterator

from cdc_lib.compile_kernels import COMMAND, are_compiled
from cdc_lib.model.finding import Finding


def check_kernels() -> Iterator[Finding]:
    """Yield a finding about the compiled kernels of this user; it is no fault if there are none."""
    if are_compiled():
        yield Finding("ok", "kernels are compiled")
    else:
        yield Finding("ok", f"kernels are not compiled: the first drain does it once; beforehand: {COMMAND}")
