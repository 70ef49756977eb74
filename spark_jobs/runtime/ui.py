"""The addresses of Spark's own pages."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark import SparkContext

from cdc_lib.model.spark_application import APPLICATION_FILE, SparkApplication
from cdc_lib.store import documents
from spark_jobs.runtime.log_lines import say


def ui_address(context: SparkContext) -> str | None:
    """Return the address under which people reach the pages of a Spark application; None where they are switched off.

    Where a master is the proxy (``spark.ui.reverseProxy``), it is the address of ``spark.ui.reverseProxyUrl``, if that is set.
    """
    own = context.uiWebUrl
    if not own:
        return None
    conf = context.getConf()
    proxy = conf.get("spark.ui.reverseProxyUrl", "") if conf.get("spark.ui.reverseProxy", "false") == "true" else ""
    return f"{proxy.rstrip('/')}/proxy/{context.applicationId}" if proxy else own


def tell_application(context: SparkContext, url: str | None) -> None:
    """Print where the pages of a job's own Spark are, and leave it in the file that whoever started the job named.

    Nothing is printed or left where there are no pages. The file is there before the line is.

    Args:
        context: of the application.
        url: ``merge.application_url`` of the source file.
    """
    application = SparkApplication.at(context.applicationId, ui_address(context), url)
    if application.page is None:
        return
    if name := os.environ.get(APPLICATION_FILE):
        file = Path(name)
        part = file.with_suffix(".part")
        part.write_bytes(documents.dump(application))
        part.rename(file)  # nobody reads half of it
    say(f"Spark application {application.id}: {application.page}", sys.stderr)
