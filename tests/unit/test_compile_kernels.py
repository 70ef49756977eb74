"""What is compiled at install."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

from cdc_lib.binlog.types.registry import USUAL
from cdc_lib.compile_kernels import COMMAND
from cdc_lib.model.column_types import Kind

_COMPILED = """
import json
from numba.core.dispatcher import Dispatcher
import cdc_lib.compile_kernels as warm
warm.warm()
import gc
print(json.dumps(sorted({d.py_func.__name__ for d in gc.get_objects() if isinstance(d, Dispatcher) and d.signatures})))
"""


_CACHES = """
import os
import numba
from cdc_lib.binlog.bytes.crc32 import crc32
assert crc32.stats.cache_path.startswith(os.environ["NUMBA_CACHE_DIR"]), crc32.stats.cache_path
"""


def test_a_process_that_imported_numba_before_uses_the_same_cache():
    """In the folder of another version's kernels, or beside the files, an old kernel would be found."""
    root = Path(__file__).parents[2]
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", _CACHES], capture_output=True, text=True, cwd=root,
        env={**environment, "PYTHONPATH": str(root)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_kernels_of_a_usual_window_and_snapshot_are_compiled_at_install():
    """The walk, the rows of an event, the order of changes, and the answer to a SELECT."""
    done = subprocess.run(
        [sys.executable, "-c", _COMPILED], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    compiled = set(json.loads(done.stdout))
    assert {"scan", "locate", "_order", "_gtids", "locate_text", "utf8", "copy_ranges", "convert"} <= compiled


def test_every_kind_of_column_that_is_read_is_among_the_types():
    """A new kind must be entered there."""
    assert {source_type.kind for source_type in USUAL} == set(get_args(Kind)) - {"unsupported"}


_ONCE = """
import logging
logging.basicConfig(level="INFO", format="%(message)s")
from cdc_lib.compile_kernels import are_compiled, compile_once
from numba.core import event
compiled = []
class Listener(event.Listener):
    def on_start(self, event):
        compiled.append(event.data["dispatcher"].py_func.__name__)
    def on_end(self, event):
        pass
event.register("numba:compile", Listener())
compile_once()
assert are_compiled()
print(len(compiled))
"""


def test_one_process_of_a_machine_compiles_for_the_others_and_says_so(tmp_path):
    """Workers that start together would else do the same for minutes, each for itself; what each later one needs is in the folder."""
    root = Path(__file__).parents[2]
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"CDC_CACHE": str(tmp_path), "PYTHONPATH": str(root)}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", _ONCE],
            cwd=root,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    said = [worker.communicate() for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], said
    waited, compiled = sorted(int(out) for out, _ in said)
    assert waited == 0
    assert 20 < compiled <= 48, "each costs a fifth of a second of CPU, and every first drain pays it"
    (line,) = [line for _, log in said for line in log.splitlines() if "compiling kernels" in line]
    assert COMMAND in line
    assert "once" in line


_CELLS = """
import json
from numba.core import types
from numba.core.dispatcher import Dispatcher
import cdc_lib.compile_kernels as warm
warm.warm()
import gc
wide = types.Array(types.int64, 1, "C")
print(json.dumps(sorted({
    d.py_func.__name__ for d in gc.get_objects() if isinstance(d, Dispatcher)
    for signature in d.signatures if d.py_func.__name__ in ("utf8", "convert", "copy_ranges") and wide in signature[1:3]
})))
"""


def test_a_result_and_a_row_image_share_their_kernels():
    """Cells of both have 32 bits."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", _CELLS], capture_output=True, text=True, check=True, cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    assert json.loads(done.stdout) == []
