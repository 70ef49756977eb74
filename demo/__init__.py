"""The demo: ``./dev demo``. The main job on this machine, with its own shop, Airflow, Spark and lake."""
