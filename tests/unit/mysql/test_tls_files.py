"""The files that ``server.tls`` names."""

from __future__ import annotations

import pytest

from cdc_lib.config import Credentials, ServerConfig
from cdc_lib.errors import ConfigError
from cdc_lib.mysql.connection import connect


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_that_cannot_be_read_is_a_wrong_setting_and_not_a_server_that_is_down(tmp_path, content):
    """The error comes before the server is asked, whether it is missing or holds something else."""
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    server = ServerConfig(host="127.0.0.1", port=1, user="cdc", password_env="UNUSED", tls={"ca": file})
    with pytest.raises(ConfigError, match=r"a file of server\.tls cannot be read") as caught:
        connect(server, Credentials("cdc", ""))
    assert "server.tls.ca" in caught.value.hint
