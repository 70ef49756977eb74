"""Which secrets go to a job on a Spark server."""

from __future__ import annotations

import pytest

from cdc_lib.jobs.secrets import secrets_to_send
from tests.harness.lake.running import lake_config

AZURE = {"url": "abfss://lake@account.dfs.core.windows.net/cdc"}
PRINCIPAL = {"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "client", "AZURE_CLIENT_SECRET": "s"}


@pytest.mark.parametrize(
    ("store", "environ", "sent"),
    [
        ({**AZURE, "azure_secret_env": "LAKE"}, {"LAKE": "secret", "OTHER": "x"}, {"LAKE": "secret"}),
        (AZURE, {**PRINCIPAL, "HOME": "/root"}, PRINCIPAL),
        ({"url": "gs://lake", "service_account_env": "LAKE"}, {"LAKE": "secret"}, {"LAKE": "secret"}),
    ],
)
def test_a_job_gets_the_secret_of_its_store_and_no_other_variable(tmp_path, store, environ, sent):
    """Named in the source file, or those of a service principal."""
    assert secrets_to_send(lake_config(tmp_path, store=store), {}, environ) == sent
