"""Source files become DAGs. Nothing heavy is imported here: a DAG processor reads this again and again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cdc_airflow import docs
from cdc_airflow.airflow_versions import conf, get_parsing_context
from cdc_airflow.dag_defaults import in_pool, new_dag
from cdc_airflow.dag_ids import MAINTENANCE
from cdc_airflow.operators import CollectOperator, DecodeAgainOperator, MaintainOperator
from cdc_airflow.source_dags import makers
from cdc_lib.config import Loaded, load_sources
from cdc_lib.config.load import failed
from cdc_lib.errors import ConfigError

if TYPE_CHECKING:
    from airflow.sdk import DAG


def sources_folder(dag_file: str) -> Path:
    """Return the folder of the source files: ``CDC_SOURCES``, ``[cdc] sources``, or ``sources`` beside the DAG file."""
    named = os.environ.get("CDC_SOURCES") or conf.get("cdc", "sources", fallback="")
    return Path(named or Path(dag_file).parent / "sources").resolve()


def sources_of_the_api_server() -> Path:
    """Return the same for apps of the API server, whose DAG files are in Airflow's folder of DAGs."""
    return sources_folder(str(Path(conf.get_mandatory_value("core", "dags_folder")) / "dags.py"))


def make_dags(folder: Path) -> dict[str, DAG]:
    """Return the DAGs of each right source file of a folder, by id; a wrong one hides no other.

    A worker that is about to run a task gets that task's DAG alone.

    Raises:
        ConfigError: there is no such folder.
    """
    wanted = get_parsing_context().dag_id
    dags: dict[str, DAG] = {}
    for loaded in load_sources(folder):
        dags |= _made(loaded, wanted)[0]
    return dags


def _made(loaded: Loaded, wanted: str | None = None) -> tuple[dict[str, DAG], ConfigError | None]:
    """Return the DAGs of one file by id, all or the wanted one, and what is wrong with it: one file breaks no other's DAGs."""
    config, path = loaded.config, loaded.path.resolve()
    if config is None:
        return {}, loaded.error
    try:
        return {name: make() for name, make in makers(config, path).items() if wanted in (None, name)}, None
    except Exception as error:  # noqa: BLE001 - the file's error is returned, and the other files have their DAGs
        return {}, failed(loaded.path, error).error


def make_maintenance(folder: Path) -> dict[str, DAG]:
    """Return the DAG that looks after batches and lake tables every day, by id, with tasks for each right source, or none.

    The tasks are independent: a source whose store is away keeps no other from being collected.

    Raises:
        ConfigError: there is no such folder.
    """
    if get_parsing_context().dag_id not in (None, MAINTENANCE):
        return {}
    right = [(one.source, one.path, one.config) for one in load_sources(folder) if one.config is not None]
    if not right:
        return {}
    with new_dag(
        MAINTENANCE,
        description="Removes batches that are no longer needed, and keeps lake tables small",
        doc_md=docs.MAINTENANCE,
        schedule="17 3 * * *",
        # Each task of the tables is a Spark application.
        max_active_tasks=2,
    ) as dag:
        for source, path, config in right:
            file = str(path.resolve())
            pool = in_pool(config.merge.pool)
            CollectOperator(task_id=f"collect_{source}", doc_md=docs.COLLECT, source_file=file)
            MaintainOperator(task_id=f"maintain_{source}", doc_md=docs.MAINTAIN, source_file=file, **pool)
            if config.verify.daily_windows:
                DecodeAgainOperator(task_id=f"decode_again_{source}", doc_md=docs.DECODE_AGAIN, source_file=file)
    return {MAINTENANCE: dag}


def refuse_wrong_sources(folder: Path) -> None:
    """Raise what is wrong with the source files of a folder, so that Airflow shows it as an import error.

    Raises:
        ConfigError: one error's own text, or those of all wrong files.
    """
    wrong = [error for loaded in load_sources(folder) if (error := _made(loaded)[1]) is not None]
    if not wrong:
        return
    if len(wrong) == 1:
        raise wrong[0].with_traceback(None)  # where it was raised says nothing to whoever wrote the file
    texts = "\n\n".join(map(str, wrong))
    raise ConfigError(f"{len(wrong)} sources are wrong and have no DAG; the others run\n\n{texts}")
