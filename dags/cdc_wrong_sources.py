"""Makes no DAG: shows what is wrong with source files as an Airflow import error, apart from the DAGs of the right ones.

Airflow knows one import error for each DAG file and sets all DAGs of that file aside with it, so that this must be a file
of its own.
"""

from __future__ import annotations

from cdc_airflow.factory import refuse_wrong_sources, sources_folder

refuse_wrong_sources(sources_folder(__file__))
