"""The address of Spark's own pages."""

from __future__ import annotations

from pyspark import SparkContext


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
