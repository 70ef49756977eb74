"""``python -m cdc_lib.cli``: the same as ``cdc``, where its script is not on the path."""

from __future__ import annotations

from cdc_lib.cli.main import app

app()
