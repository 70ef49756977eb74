"""Settings about certificates and about log-in by tokens."""

from __future__ import annotations

import pytest

from cdc_lib.config import Credentials, ServerConfig, StoreConfig, credentials_from_environment


@pytest.mark.parametrize("endpoint", [None, "https://s3.example.com"])
def test_a_store_that_is_reached_by_tls_may_name_its_authority(endpoint):
    assert StoreConfig(url="s3://b/p", endpoint_url=endpoint, ca="/ca.pem").ca is not None


@pytest.mark.parametrize("store", [{"url": "file:///data"}, {"url": "s3://b/p", "endpoint_url": "http://s3:9000"}])
def test_a_store_without_tls_has_no_authority(store):
    """The setting would promise what does not happen."""
    with pytest.raises(ValueError, match="ca is for a server that is reached by https"):
        StoreConfig.model_validate({**store, "ca": "/ca.pem"})


def test_a_log_in_by_tokens_asks_no_variable_for_a_password():
    server = ServerConfig.model_validate({"host": "db", "user": "app", "rds_iam": {"region": "r"}, "tls": {}})
    assert credentials_from_environment(server, {}) == Credentials("app", "")
