# One image for Airflow, the Spark server and the Spark cluster: they must have the same Python and Spark.
FROM python:3.11-slim-bookworm

RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/lakecdc

# The lock names everything, with hashes: nothing is resolved here.
COPY requirements.lock ./
RUN pip install --no-cache-dir --require-hashes --no-deps --requirement requirements.lock

COPY pyproject.toml LICENSE ./
COPY cdc_lib cdc_lib
COPY spark_jobs spark_jobs
COPY plugins plugins
COPY dags/cdc_sources.py dags/cdc_maintenance.py dags/cdc_wrong_sources.py dags/
RUN pip install --no-cache-dir --no-deps --no-build-isolation . \
    && useradd --uid 10001 --home-dir /var/lib/airflow --shell /usr/sbin/nologin cdc \
    && mkdir -p /var/lib/airflow /var/lib/cdc \
    && chown cdc:cdc /var/lib/airflow /var/lib/cdc

# The lake format's jars, Java's classes and the compiled kernels: neither the first merge nor the first window waits for them.
ENV CDC_CACHE=/opt/lakecdc/cache \
    AIRFLOW_HOME=/var/lib/airflow \
    PYTHONUNBUFFERED=1 \
    TZ=UTC
RUN python -c 'from spark_jobs.runtime.jars import jar_paths; jar_paths(["iceberg", "sqlite", "postgresql", "s3", "gcs", "azure"])' \
    && python -m spark_jobs.runtime.build_class_archive iceberg sqlite \
    && python -m spark_jobs.runtime.build_class_archive iceberg s3 \
    && python -m cdc_lib.compile_kernels \
    && chown -R cdc:cdc "$CDC_CACHE"

USER cdc
EXPOSE 8080
