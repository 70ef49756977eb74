"""The demo: ``./dev demo``. The main job on this machine, with a shop, Airflow, Spark and a lake of its own."""
