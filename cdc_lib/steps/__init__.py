"""The steps of a run, taken by :mod:`cdc_lib.pipeline`."""
