"""Where the pages of a job's own Spark are."""

from __future__ import annotations

import pytest

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


def test_the_id_is_one_part_of_the_address():
    """Whatever a cluster's manager names applications."""
    assert SparkApplication.at("a/../b?c", None, "http://h/{id}/jobs").ended == "http://h/a%2F..%2Fb%3Fc/jobs"
