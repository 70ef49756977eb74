"""An S3 server over TLS, whose certificate an authority of its own signed."""

from __future__ import annotations

import pytest
from pyiceberg.catalog import load_catalog

from cdc_lib.config import StoreConfig
from cdc_lib.config.lake import LakeConfig
from cdc_lib.errors import ConfigError, StoreUnavailable
from cdc_lib.lake.catalog import catalog_properties
from cdc_lib.store.objects.open import open_store
from tests.harness.servers import S3Server
from tests.harness.servers.certificate import write_certificate


@pytest.fixture(scope="module")
def secure():
    """A server that is named by its certificate."""
    with S3Server(names=("localhost", "127.0.0.1")) as server:
        yield server


@pytest.fixture
def store(monkeypatch):
    """Open the store of a server as a source file would."""

    def _store(server, bucket, **settings):
        monkeypatch.setenv("TLS_KEY", server.access_key)
        monkeypatch.setenv("TLS_SECRET", server.secret_key)
        config = {
            "url": f"s3://{bucket}/cdc", "endpoint_url": server.endpoint, "region": server.region,
            "access_key_env": "TLS_KEY", "secret_key_env": "TLS_SECRET", **settings,
        }  # fmt: skip
        return open_store(StoreConfig.model_validate(config))

    return _store


def test_a_server_is_trusted_by_its_authority(store, secure):
    """For objects, conditional writes and lists."""
    opened = store(secure, secure.make_bucket(), ca=secure.certificate)
    assert opened.put_if_absent("a", b"1")
    assert not opened.put_if_absent("a", b"2")
    assert opened.get("a").data == b"1"
    assert [one.key for one in opened.list("")] == ["a"]


def test_another_authority_or_none_is_one_error_with_its_way_out(store, secure, tmp_path):
    """A retry would not help."""
    write_certificate(tmp_path / "other.pem", tmp_path / "key.pem")
    for settings in ({}, {"ca": tmp_path / "other.pem"}):
        with pytest.raises(ConfigError, match=r"the certificate of the S3 server https://.* is not accepted") as caught:
            store(secure, "any", **settings).get("a")
        assert "store.ca" in caught.value.hint
        assert "self-signed certificate" in caught.value.message


def test_a_server_of_another_name_is_refused(store):
    """Though its authority is trusted."""
    with S3Server(names=("s3.example.com",)) as server, pytest.raises(ConfigError, match="is not accepted: hostname"):
        store(server, "any", ca=server.certificate).get("a")


def test_a_server_without_tls_is_named(store, s3_server, tmp_path):
    """The address says https."""
    write_certificate(tmp_path / "ca.pem", tmp_path / "key.pem")
    endpoint = s3_server.endpoint.replace("http:", "https:")
    with pytest.raises(StoreUnavailable) as caught:
        store(s3_server, "any", ca=tmp_path / "ca.pem", endpoint_url=endpoint).get("a")
    assert f"Check that {endpoint} (store.endpoint_url) runs and speaks TLS there" in caught.value.hint


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_that_cannot_be_read_is_named(store, secure, tmp_path, content):
    """Missing, or without a certificate."""
    if content is not None:
        (tmp_path / "ca.pem").write_text(content)
    with pytest.raises(ConfigError, match=r"the file of store\.ca cannot be read"):
        store(secure, "any", ca=tmp_path / "ca.pem").get("a")


def test_files_of_the_lake_are_read_and_written_with_the_same_authority(secure, tmp_path, monkeypatch):
    """By PyIceberg, in the catalog of a source; without the authority it fails."""
    bucket = secure.make_bucket()
    monkeypatch.setenv("TLS_KEY", secure.access_key)
    monkeypatch.setenv("TLS_SECRET", secure.secret_key)
    (tmp_path / "cat.db").touch()

    class Source:
        store = StoreConfig(
            url=f"s3://{bucket}/cdc", endpoint_url=secure.endpoint, region=secure.region, ca=secure.certificate,
            access_key_env="TLS_KEY", secret_key_env="TLS_SECRET",
        )  # fmt: skip
        lake = LakeConfig(type="jdbc", uri=f"jdbc:sqlite:{tmp_path}/cat.db", warehouse=f"s3://{bucket}/lake")

    properties = {**catalog_properties(Source), "init_catalog_tables": "true"}
    io = load_catalog("lake", **properties)._load_file_io(properties, Source.lake.warehouse)
    with io.new_output(f"s3://{bucket}/lake/file").create() as stream:
        stream.write(b"rows")
    with io.new_input(f"s3://{bucket}/lake/file").open() as stream:
        assert stream.read() == b"rows"
    untrusted = {name: value for name, value in properties.items() if name != "py-io-impl"}
    plain = load_catalog("other", **untrusted)._load_file_io(untrusted, Source.lake.warehouse)
    with pytest.raises(OSError, match="SSL"):
        plain.new_input(f"s3://{bucket}/lake/file").open().read()
