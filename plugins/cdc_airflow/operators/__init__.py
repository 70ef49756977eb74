"""The tasks of a source's DAG, each one call into the library.

Rule 1: every task finds out automatically, from the cursors and the store, what there is to do. What another task returned is
for people to see; only `drain` takes its unit from there, and a unit that is not in flight any more is no work.
Rule 2: an ack counts evidence in the store. Marking a task success makes no evidence.
Rule 3: doing a task again changes nothing that was done.
"""

from cdc_airflow.operators.ack import AckDrainOperator, AckLakeOperator
from cdc_airflow.operators.answer import AnswerOperator
from cdc_airflow.operators.backfill import BackfillOperator
from cdc_airflow.operators.base import CdcOperator
from cdc_airflow.operators.cover import CoverOperator
from cdc_airflow.operators.drain import MAP_INDEX, DrainOperator
from cdc_airflow.operators.erase import EraseOperator
from cdc_airflow.operators.maintenance import CollectOperator, MaintainOperator
from cdc_airflow.operators.merge import MergeOperator, PlanMergeOperator
from cdc_airflow.operators.plan import PlanOperator
from cdc_airflow.operators.resume import ResumeOperator
from cdc_airflow.operators.rewind import RewindOperator
from cdc_airflow.operators.seal_days import SealDaysOperator
from cdc_airflow.operators.second_decoder import DecodeAgainOperator
from cdc_airflow.operators.snapshot import SnapshotOperator
from cdc_airflow.operators.spark_job import SparkJobOperator
from cdc_airflow.operators.verify import VerifyOperator

__all__ = [
    "MAP_INDEX",
    "AckDrainOperator",
    "AckLakeOperator",
    "AnswerOperator",
    "BackfillOperator",
    "CdcOperator",
    "CollectOperator",
    "CoverOperator",
    "DecodeAgainOperator",
    "DrainOperator",
    "EraseOperator",
    "MaintainOperator",
    "MergeOperator",
    "PlanMergeOperator",
    "PlanOperator",
    "ResumeOperator",
    "RewindOperator",
    "SealDaysOperator",
    "SnapshotOperator",
    "SparkJobOperator",
    "VerifyOperator",
]
