"""Makes no DAG: shows what is wrong with source files as an Airflow import error, apart from the DAGs of the right ones.

Airflow knows one import error for each DAG file and disables all DAGs of that file with it, so that this must be a file
of its own.
"""

from __future__ import annotations

from cdc_airflow.factory import refuse_wrong_sources, sources_folder

refuse_wrong_sources(sources_folder(__file__))
