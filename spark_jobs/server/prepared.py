"""Imported once by the process from which the processes of jobs are forked: they are copies of it, and make nothing again."""

import cdc_lib.store.objects.s3  # noqa: F401 - jobs open stores, and copies of this process import nothing again
from cdc_lib.store.documents import prepare

prepare()
