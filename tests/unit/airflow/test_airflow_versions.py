"""What is refused, and what an Airflow before 3.3 gets instead of what it lacks."""

from __future__ import annotations

import pytest

from cdc_airflow.airflow_versions import refuse_older
from cdc_lib.errors import ConfigError


@pytest.mark.parametrize("version", ["2.11.0", "3.0.6", "3.0.0rc1"])
def test_an_older_airflow_is_refused_in_one_sentence(version: str):
    """With the oldest that works, and with what runs where it cannot be upgraded."""
    with pytest.raises(ConfigError) as error:
        refuse_older(version)
    assert error.value.message == f"the DAGs and operators of lakecdc need Airflow 3.1 or later, and this is {version}"
    assert "let a BashOperator or a container run the command" in error.value.hint


@pytest.mark.parametrize("version", ["3.1.0", "3.1.8", "3.2.0rc1", "3.3.2", "3.10.0", "4.0.0.dev0"])
def test_a_supported_or_newer_airflow_is_not_refused(version: str):
    """3.10 comes after 3.3."""
    refuse_older(version)
