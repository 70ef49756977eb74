"""The page in Airflow's navigation: what the store holds of the sources, as small JSON documents and one JavaScript file."""
