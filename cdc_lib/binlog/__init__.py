"""From bytes on the wire to Arrow columns.

Importing this package sets numba's cache folder. numba checks only the file that a kernel is in: after an upgrade of another
file, the cached kernel would still contain that file's old code. So the folder's name contains a digest of all files.
"""

from __future__ import annotations

import os
import sys

from cdc_lib.binlog.kernel_folder import VARIABLE, kernel_folder

# numba reads it from the environment, once: if somebody imported numba before, it would put the kernels beside their files.
os.environ[VARIABLE] = str(kernel_folder())
if "numba" in sys.modules:
    sys.modules["numba"].config.reload_config()
