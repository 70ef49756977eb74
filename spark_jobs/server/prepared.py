"""Imported once by the process from which the processes of jobs are forked: they are copies of it, and make nothing again."""

from cdc_lib.store.documents import prepare

prepare()
