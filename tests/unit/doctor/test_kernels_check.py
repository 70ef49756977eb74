"""Whether the first drain waits for compilation."""

from __future__ import annotations

from cdc_lib.binlog.kernel_folder import VARIABLE
from cdc_lib.compile_kernels import COMMAND, _mark, are_compiled
from cdc_lib.doctor.kernels_check import check_kernels


def test_it_is_known_whether_kernels_are_compiled(tmp_path, monkeypatch):
    """It is no fault; whoever installs can do it before the first run."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    (missing,) = check_kernels()
    assert (missing.level, COMMAND in missing.what) == ("ok", True)
    _mark().touch()
    (there,) = check_kernels()
    assert are_compiled()
    assert (there.level, there.what) == ("ok", "kernels are compiled")
