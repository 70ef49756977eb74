"""Settings of the way to a server in a private network, and the log-in there."""

from __future__ import annotations

import pytest

from cdc_lib.config import Credentials, HopLogin, ServerConfig, credentials_from_environment
from cdc_lib.config.credentials import handed_on, take_handed
from cdc_lib.config.load import load_sources
from cdc_lib.errors import ConfigError
from cdc_lib.jobs.secrets import secret_variables

SSH = {"host": "bastion", "user": "tunnel", "key_file": "/k"}
SOCKS = {"host": "proxy"}


def server(**changed):
    return ServerConfig.model_validate({"host": "db", "user": "cdc", "password_env": "P", **changed})


@pytest.mark.parametrize(
    ("ssh", "problem"),
    [
        ({"key_file": None}, "needs key_file, key_env, agent: true, password_env, or connection"),
        ({"agent": True}, "more than one of key_file, key_env and agent"),
        ({"user": None}, "needs user: NAME"),
        ({"key_file": None, "agent": True, "passphrase_env": "W"}, "passphrase_env is for a key"),
        ({"known_hosts": "/h", "host_key": "SHA256:" + "A" * 43}, "one or the other"),
        ({"host_key": "SHA256:short"}, "host_key"),
        ({"host_key": "any"}, "host_key"),
        ({"keepalive": "500ms"}, "1s or longer"),
    ],
)
def test_settings_that_cannot_hold_are_refused(ssh, problem):
    with pytest.raises(ValueError, match=problem):
        server(ssh={**SSH, **ssh})


def test_there_is_one_way_to_a_server():
    """And a proxy's log-in is whole."""
    with pytest.raises(ValueError, match="ssh and socks are given one or the other"):
        server(ssh=SSH, socks=SOCKS)
    with pytest.raises(ValueError, match="together"):
        server(socks={**SOCKS, "user": "me"})
    assert server(ssh=SSH).hop.named == "the SSH server bastion:22"
    assert server(socks=SOCKS).hop.named == "the SOCKS proxy proxy:1080"
    assert server().hop is None


def test_its_secrets_come_from_the_named_variables():
    """They are required, sent to jobs on other machines, and in no text."""
    names = {"key_file": None, "key_env": "K", "passphrase_env": "W", "password_env": "H"}
    found = credentials_from_environment(server(ssh={**SSH, **names}), {"P": "p", "K": "key", "W": "word", "H": "h"})
    assert found == Credentials("cdc", "p", hop=HopLogin("tunnel", "h", "key", "word"))
    for secret in ("key", "word", "'h'"):
        assert secret not in repr(found.hop).replace("hop", "")
    with pytest.raises(ConfigError, match="variable W is not set"):
        credentials_from_environment(server(ssh={**SSH, **names}), {"P": "p", "K": "key", "H": "h"})
    by_proxy = server(socks={**SOCKS, "user": "me", "password_env": "H"})
    assert credentials_from_environment(by_proxy, {"P": "p", "H": "h"}).hop == HopLogin("me", "h")


def test_they_are_handed_to_the_process_of_a_job():
    """Which removes them from its environment."""
    credentials = Credentials("cdc", "p", "mask", HopLogin("tunnel", "h", "k\ney", "word"), "the Airflow connection c")
    environment = handed_on(credentials)
    taken = take_handed(environment)
    assert taken == credentials
    assert taken.password_from == credentials.password_from
    assert not environment


def test_a_log_in_that_only_airflow_has_is_reported_outside_it():
    with pytest.raises(ConfigError, match="only Airflow knows the log-in at the SSH server bastion:22"):
        credentials_from_environment(server(ssh={"host": "bastion", "connection": "c"}), {"P": "p"})
    both = {"host": "bastion", "connection": "c", "user": "tunnel", "key_file": "/k"}
    assert credentials_from_environment(server(ssh=both), {"P": "p"}).hop == HopLogin("tunnel")


def test_one_private_address_behind_two_bastions_is_two_servers(tmp_path):
    """Their server_ids may be equal; at one server they may not."""
    text = (
        "server: {{host: 10.0.0.5, user: cdc, password_env: P, server_id: 7, "
        "ssh: {{host: {bastion}, user: tunnel, key_file: /k}}}}\n"
        'tables: ["a.*"]\nstore: {{url: "file:///s"}}\nlake: {{type: jdbc, uri: "jdbc:sqlite:c", warehouse: "file:///w", namespace: n}}\n'
    )
    for name, bastion in (("one", "east"), ("two", "west")):
        (tmp_path / f"{name}.yaml").write_text(text.format(bastion=bastion))
    assert [one.error for one in load_sources(tmp_path, {})] == [None, None]
    (tmp_path / "two.yaml").write_text(text.format(bastion="east"))
    assert all("server_id" in str(one.error) for one in load_sources(tmp_path, {}))


def test_jobs_on_a_spark_server_get_its_secrets(tmp_path):
    """As they get the password."""
    text = (
        "server: {host: db, user: cdc, password_env: P, "
        "ssh: {host: b, user: t, key_env: K, passphrase_env: W, password_env: H}}\n"
        'tables: ["a.*"]\nstore: {url: "file:///s"}\nlake: {type: jdbc, uri: "jdbc:sqlite:c", warehouse: "file:///w", namespace: n}\n'
    )
    (tmp_path / "shop.yaml").write_text(text)
    [loaded] = load_sources(tmp_path, {})
    assert {"P", "K", "W", "H"} <= {*secret_variables(loaded.config)}
