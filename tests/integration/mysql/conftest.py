"""Bastions for the tests of this folder."""

from __future__ import annotations

import pytest

from tests.harness.network.bastion import Bastion


@pytest.fixture
def bastion(tmp_path):
    """A bastion that knows the servers of this machine as ``db.private`` and ``other.private``."""
    from cdc_lib.mysql.tunnel.ssh import close_tunnels

    (folder := tmp_path / "bastion").mkdir()
    with Bastion(folder, {"db.private": "127.0.0.1", "other.private": "127.0.0.1"}) as running:
        yield running
        close_tunnels()
