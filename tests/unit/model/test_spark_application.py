"""Where the pages of a job's own Spark are."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from cdc_lib.config.work import MergeConfig
from cdc_lib.model.spark_application import SparkApplication

OWN = "http://driver.example:4040"


@pytest.mark.parametrize(
    ("own", "url", "running", "ended"),
    [
        (OWN, "https://spark.example/history/{id}/", OWN, "https://spark.example/history/app-1/"),
        (None, "https://spark.example/app/?appId={id}", *["https://spark.example/app/?appId=app-1"] * 2),
        (OWN, None, OWN, None),
        (None, None, None, None),
    ],
)
def test_its_own_pages_end_with_it_and_those_of_the_cluster_stay(
    own: str | None, url: str | None, running: str | None, ended: str | None
):
    """Without pages of its own, the cluster's are there while it runs too."""
    application = SparkApplication.at("app-1", own, url)
    assert (application.page, application.ended) == (running, ended)


@pytest.mark.parametrize(
    "url", ["http://h/history/", "spark://h:7077/{id}", "http://me:secret@h/{id}", "javascript:alert(1)//http://{id}"]
)
def test_an_address_that_leads_nowhere_or_has_a_password_is_refused(url: str):
    """Everybody who sees the task sees it."""
    with pytest.raises(ValidationError, match="application_url"):
        MergeConfig(application_url=url)


def test_the_id_is_one_part_of_the_address():
    """Whatever a cluster's manager names applications."""
    assert SparkApplication.at("a/../b?c", None, "http://h/{id}/jobs").ended == "http://h/a%2F..%2Fb%3Fc/jobs"
