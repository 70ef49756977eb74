"""After a merge: its rows are compared with the source, and what was found is printed. The merge is complete before it."""

from __future__ import annotations

from cdc_lib.cli.output import say
from cdc_lib.cli.pipelines import open_pipeline
from cdc_lib.config import SourceConfig
from cdc_lib.errors import ConfigError
from cdc_lib.verify.after_merge import check_changed_rows, not_compared, said


def compare_changed_rows(config: SourceConfig) -> None:
    """Compare the rows that the merge in flight changed, if ``verify.after_merge`` says so, and print the result.

    A merge needs no log-in to the source: without one, nothing is compared.
    """
    if not config.verify.after_merge:
        return
    try:
        pipeline = open_pipeline(config)
    except ConfigError as error:
        say(not_compared(error.message), style="yellow")
        return
    after = check_changed_rows(pipeline)
    for is_warning, line in said(after):
        say(line, style="red" if is_warning else "")
