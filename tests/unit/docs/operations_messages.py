"""Messages of ``docs/operations.md`` that no test of that page causes, and what does what their rows say."""

from __future__ import annotations

FOLLOWED_ELSEWHERE = {
    "XA transactions are in use at the server, and this user may not see which are prepared": "tests/integration/plan/test_begin_xa.py::test_the_error_of_a_user_without_xa_privilege_names_the_grant",
    "XA transactions are prepared, and their rows would be missed here when they are committed: …": "tests/integration/plan/test_begin_xa.py::test_a_source_does_not_begin_while_a_transaction_stays_prepared",
    "a table cannot be read at the moment: …": "tests/integration/drain/test_unreadable_tables.py::test_a_locked_table_is_named_and_retried",
    "batch … is not the oldest in flight": "tests/unit/consumers/test_subscription.py::test_batches_are_acknowledged_in_the_order_in_which_they_were_got",
    "changes up to … must be read again, and only those up to … have been read": "tests/integration/plan/test_start.py::test_a_rewind_can_be_reverted_only_before_its_changes_are_read",
    "column … is kept in the format before MySQL 5.6, and MariaDB's binlog does not contain its fraction": "tests/integration/drain/test_drain_rare_types.py::test_old_temporals_of_mariadb_stop_unless_promised_to_be_whole",
    "could not …: …": "tests/integration/store/test_full_disk.py::test_a_full_disk_stops_a_window_which_continues_when_there_is_space",
    "rows cannot be read back from the source: …": "tests/integration/spark/test_reselect.py::test_whole_rows_come_from_the_log_when_the_source_cannot_be_asked",
    "rows were decoded before the statement that rolls them back": "tests/unit/binlog/test_rolled_back.py::test_a_transaction_that_ends_in_rollback_leaves_no_row",
    "tables that somebody else changed are …: …": "tests/integration/spark/test_foreign_changes.py::test_with_quarantine_the_table_is_quarantined_and_released",
    "the XA transaction … is committed, but its rows are in no batch: it was prepared before this source began, or its batch was removed": "tests/integration/spark/test_failover.py::test_new_snapshots_of_all_tables_replace_a_transaction_whose_batch_was_collected",
    "the binlog does not contain all columns of some rows: …": "tests/integration/spark/test_resnapshot.py::test_a_new_snapshot_leads_out_of_a_merge_that_an_incomplete_row_stops",
    "the branch of this job was removed …": "tests/integration/spark/test_writers_beside.py::test_a_removed_branch_is_detected_and_the_merge_retried",
    "the lake table … lacks what was merged: its column … was dropped": "tests/integration/spark/test_foreign_changes.py::test_a_lake_table_that_another_writer_changed_stops_and_the_others_continue",
    "the merge was planned again while it ran": "tests/integration/spark/test_resnapshot.py::test_a_merge_that_was_withdrawn_and_still_runs_does_no_harm",
    "the certificate of the S3 server … is not accepted: …": "tests/integration/store/test_s3_over_tls.py::test_another_authority_or_none_is_one_error_with_its_way_out",
    "the file of store.ca cannot be read: …": "tests/integration/store/test_s3_over_tls.py::test_a_file_that_cannot_be_read_is_named",
    "the server ended the binlog stream before the window's end": "tests/integration/drain/test_drain_faults.py::test_a_connection_cut_at_any_byte_leaves_nothing",
    "the server refuses to read a table: …": "tests/integration/drain/test_unreadable_tables.py::test_a_table_that_the_user_may_not_read_is_named",
    "the source … at …, and the source file stops the table there (schema_changes.…: stop)": "tests/integration/spark/test_schema_changes.py::test_stopped_tables_continue_where_they_were_once_the_source_file_says_how",
    "the type of a column changed within a batch so that no type holds both: …": "tests/unit/consumers/test_batch.py::test_types_that_cannot_be_united_are_reported_and_versions_can_be_read_separately",
    "the unit belongs to epoch …, and the cursor is in epoch …": "tests/integration/plan/test_failover.py::test_a_standby_takes_over_in_the_middle_of_a_workload",
    "… has rows with …, and … keeps rows by …": "tests/integration/spark/test_backfill_other_key.py::test_a_copy_is_built_from_the_snapshot_with_the_new_key_on",
}
"""The message of each row, and the test that causes it and does what the row says, to equal tables or to what the row promises."""

CAUSED_ONLY = {
    "a RENAME put another table's rows into a captured table: …": (
        "tests/unit/binlog/test_table_changes.py::test_rows_of_another_table_ask_for_reading_it",
        "The next plan takes the snapshot: tests/integration/spark/test_resnapshot.py merges such snapshots.",
    ),
    "a part of … is no longer stored: …": (
        "tests/unit/backfill/test_period.py::test_a_period_that_begins_before_the_oldest_batch_is_refused",
        "A later --since is run by test_operations_ways_out.py, with batches that are stored.",
    ),
    "a route keeps column …, which is now called …, and not …": (
        "tests/unit/merge/test_renames.py::test_renames_that_the_lake_cannot_follow_stop_the_table",
        "The error is made from values, without a server.",
    ),
    "a row image without the table's key": (
        "tests/unit/binlog/test_images.py::test_a_corrupt_row_image_stops_the_window_with_its_position",
        "The error is made from values, without a server.",
    ),
    "a snapshot chunk comes after windows that are already merged": (
        "tests/unit/merge/test_plan.py::test_a_replay_with_a_gap_is_refused",
        "The error is made from values, without a server.",
    ),
    "a statement names a table in characters that its session's character set does not have, or that are not read: …": (
        "tests/integration/drain/test_statement_charsets.py::test_a_name_that_the_server_cuts_stops_the_window",
        "*Skip an event* is run by test_operations_ways_out.py, for other causes.",
    ),
    "a statement whose effect on rows the binlog does not show: …": (
        "tests/integration/drain/test_drain_stops.py::test_rows_removed_without_an_event_stop_a_table_that_cannot_be_resnapshotted",
        "*Skip an event* is run by test_operations_ways_out.py, for other causes.",
    ),
    "a transaction with an unknown compression (type …)": (
        "tests/unit/binlog/test_payload.py::test_a_compression_that_is_not_known_stops_the_window",
        "Only a newer release reads what is there.",
    ),
    "a … catalog makes the folder of a table from its name, and … is not safe as one": (
        "tests/unit/model/test_folder.py::test_a_catalog_that_makes_folders_of_names_gets_no_other_names",
        "The error is made from values, without a server.",
    ),
    "an object was replaced while it was read": (
        "tests/contract/test_s3_faults.py::test_an_object_that_is_replaced_while_it_is_read_is_not_mixed",
        "A task that is tried again is all that the row says; the test causes the error alone.",
    ),
    "an online schema change changed values in rows that its statements do not show (…)": (
        "tests/unit/merge/test_table_resets.py::test_a_swap_with_unclear_values_stops_its_table",
        "A new snapshot of a table is run by test_operations_ways_out.py, for other causes.",
    ),
    "an online schema change tool ended in the time that is merged again, and began before it": (
        "tests/unit/merge/test_again.py::test_the_end_of_an_online_schema_change_is_not_merged_again_without_its_beginning",
        "The error is made from values, without a server.",
    ),
    "another commit came first": (
        "tests/contract/test_merge_target.py::test_rows_are_not_committed_if_the_table_changed_while_they_were_written",
        "A task that is tried again is all that the row says; the test causes the error alone.",
    ),
    "another merge moved the table meanwhile": (
        "tests/unit/merge/test_again.py::test_a_table_moved_by_another_merge_is_a_conflict",
        "A task that is tried again is all that the row says; the test causes the error alone.",
    ),
    "column … is now called … at the source, and … share it in the lake": (
        "tests/unit/merge/test_renames.py::test_renames_that_the_lake_cannot_follow_stop_the_table",
        "A new snapshot of a table is run by test_operations_ways_out.py, for other causes.",
    ),
    "columns of the lake table were renamed meanwhile": (
        "tests/integration/spark/test_renamed_columns.py::test_rows_computed_before_columns_exchanged_their_names_are_not_published",
        "A task that is tried again is all that the row says; the test causes the error alone.",
    ),
    "columns were renamed (…) while rows of the table were read, and it is unknown which names these rows use": (
        "tests/unit/merge/test_renames.py::test_columns_whose_names_were_reused_before_a_reselection_stop_the_table",
        "A new snapshot of a table is run by test_operations_ways_out.py, for other causes.",
    ),
    "could not …: no keys for the storage: …": (
        "tests/unit/spark/test_faults.py::test_missing_keys_of_executors_have_a_hint",
        "It needs executors of a cluster.",
    ),
    "could not …: the S3 server answered …": (
        "tests/contract/test_s3_faults.py::test_keys_that_are_wrong_are_a_setting_that_is_wrong",
        "Every other test on S3 has the right keys.",
    ),
    "could not …: the catalog's file cannot be opened: …": (
        "tests/unit/spark/test_faults.py::test_java_errors_are_translated_to_the_error_tree",
        "Tests run as a user who may write everywhere.",
    ),
    "rows of a table must be deleted, because of a statement (such as TRUNCATE) or a late snapshot": (
        "tests/integration/spark/test_table_resets.py::test_without_such_a_key_nothing_is_taken",
        "Routes with keys are merged by tests/integration/spark/test_table_resets.py.",
    ),
    "some changes lack columns, so predicates cannot be evaluated for them": (
        "tests/integration/spark/test_routes.py::test_a_filter_refuses_changes_that_lack_cells",
        "The error is made from values, without a server.",
    ),
    "source and lake differ: …": (
        "tests/integration/airflow/test_tasks.py::test_the_verify_dag_runs_separately_and_fails_for_wrong_rows",
        "*Rows that are wrong* is run by test_operations_ways_out.py.",
    ),
    "tables that share a lake table have different modes: …": (
        "tests/unit/merge/test_modes.py::test_tables_that_share_a_lake_table_must_have_one_mode",
        "The error is made from values, without a server.",
    ),
    "the Airflow connection … has no …": (
        "tests/integration/airflow/test_connection_hooks.py::test_a_server_that_does_not_answer_and_a_wrong_field_are_named",
        "A complete connection is tested beside it.",
    ),
    "the Spark job ended with code …": (
        "tests/unit/cli/test_spark_process.py::test_a_job_that_fails_is_an_error_with_its_code",
        "The row says where to look.",
    ),
    "the Spark job was ended by signal …, possibly because it ran out of memory": (
        "tests/unit/cli/test_spark_process.py::test_a_job_that_a_signal_ended_may_succeed_next_time",
        "Jobs of tests do not run out of memory; killed merges are repeated by ./dev chaos.",
    ),
    "the XA transaction … is committed in this time, and its rows are in no batch that is stored": (
        "tests/unit/backfill/test_archive.py::test_removed_rows_of_a_prepared_transaction_are_reported",
        "The error is made from values, without a server.",
    ),
    "the XA transaction … is committed, and its rows are in no batch": (
        "tests/integration/consumers/test_consumers.py::test_removed_batches_stop_the_consumer_that_needs_them",
        "A new subscription after a gap is run by test_operations_ways_out.py.",
    ),
    "the batches after … are no longer stored, and what is merged again must reach …": (
        "tests/unit/backfill/test_period.py::test_windows_with_a_gap_are_refused",
        "cdc batches replay is run by test_operations_ways_out.py, for batches that are missing.",
    ),
    "the binlog and the schema history disagree about a table: …": (
        "tests/integration/schema_history/test_schema_history.py::test_a_history_that_does_not_fit_the_rows_stops_the_window_and_shows_both",
        "A new snapshot of a table is run by test_operations_ways_out.py, for other causes.",
    ),
    "the columns of a table are not known from … and cannot be read from the server: …": (
        "tests/integration/schema_history/test_schema_history.py::test_rows_after_a_statement_that_is_not_followed_stop_the_window",
        "A new snapshot of a table is run by test_operations_ways_out.py, for other causes.",
    ),
    "the file has transactions without GTID events, of a server before MySQL 5.6.5: times are not found in it": (
        "tests/unit/binlog/test_boundaries.py::test_times_are_not_looked_for_where_transactions_have_no_gtid_events",
        "No server of the tests writes such a file.",
    ),
    "the lake table is not there, and the batches of this time do not hold all of its rows": (
        "tests/unit/merge/test_again.py::test_a_missing_lake_table_is_not_created_from_a_part_of_its_rows",
        "The error is made from values, without a server.",
    ),
    "the marker … in the table's snapshot cannot be read: …": (
        "tests/unit/model/test_marker.py::test_a_marker_of_another_release_is_refused",
        "Only a newer release reads what is there.",
    ),
    "the primary key changed from (…) to (…)": (
        "tests/contract/test_merge_target.py::test_incompatible_columns_are_refused_before_any_change",
        "A new snapshot of a table is run by test_operations_ways_out.py, for other causes.",
    ),
    "the raw archive of a window cannot be read: …": (
        "tests/integration/backfill/test_replay.py::test_damaged_or_missing_raw_events_are_reported",
        "Reading the window from the server is run by test_operations_ways_out.py.",
    ),
    "the server answers with an error: …": (
        "tests/unit/model/test_refusals.py::test_an_error_about_no_table_is_the_servers_answer",
        "The message is the server's own.",
    ),
    "the server changed rows by foreign keys and did not write them to its binlog: …": (
        "tests/integration/spark/test_cascades.py::test_a_source_with_cascades_stop_names_the_tables",
        "With cascades: snapshot the tests beside it end with equal tables.",
    ),
    "the server has no binlog up to the window's end yet": (
        "tests/unit/binlog/test_frame.py::test_the_end_of_the_binlog_before_the_windows_end_can_be_tried_again",
        "A task that is tried again is all that the row says; the test causes the error alone.",
    ),
    "the server's binlog is not the one that the cursor is in: …": (
        "tests/integration/plan/test_start.py::test_a_server_whose_binlog_was_reset_is_never_read_on",
        "*Continue after a gap* is run by test_operations_ways_out.py, for other causes.",
    ),
    "the source dropped …, and … share the lake table": (
        "tests/unit/merge/test_column_policy.py::test_a_column_of_a_shared_lake_table_is_not_dropped",
        "The error is made from values, without a server; that a kept column stays is shown by test_schema_changes.py.",
    ),
    "the table beside the lake table keeps rows by …, and the rows of this time have …": (
        "tests/unit/merge/test_again.py::test_a_copy_that_keeps_old_rows_under_another_key_is_refused",
        "The copy is dropped and built again by tests/integration/spark/test_backfill_other_key.py.",
    ),
    "the work was planned for …, but … answers": (
        "tests/integration/drain/test_drain.py::test_another_server_is_reported",
        "The next plan switches: tests/integration/plan/test_failover.py.",
    ),
    "the … cursor was changed after this task loaded it": (
        "tests/contract/test_cursor_store.py::test_a_swap_of_an_old_generation_is_refused_and_names_the_holder",
        "A task that is tried again is all that the row says; the test causes the error alone.",
    ),
    "transactions after the set are no longer in any binlog file: …": (
        "tests/integration/plan/test_locate.py::test_gtids_that_the_server_lacks_or_purged_are_refused",
        "A new snapshot of a table is run by test_operations_ways_out.py, for other causes.",
    ),
    "… does not keep the condition …: it …": (
        "tests/contract/test_s3_faults.py::test_a_server_that_ignores_a_condition_is_refused_before_the_first_one",
        "Every other test on S3 has a store that keeps conditions.",
    ),
    "… needs …, which is not installed": (
        "tests/unit/cli/test_spark_process.py::test_a_missing_spark_is_reported_with_its_install_command",
        "Tests run where Spark is installed.",
    ),
    "… share one lake table and are not compatible: …": (
        "tests/integration/spark/test_routes.py::test_types_that_do_not_fit_together_name_both_source_tables",
        "Routes to separate tables are merged by tests/integration/spark/test_routes.py.",
    ),
    "…; raw events of the window are not stored": (
        "tests/integration/plan/test_gaps.py::test_a_purged_window_whose_raw_events_are_lost_or_damaged_needs_new_snapshots",
        "cdc batches refill --over is run by test_operations_ways_out.py.",
    ),
}
"""The message of each row, the test that causes it, and why nothing does what the row says after this cause."""

NOT_CAUSED = {
    "a batch was removed while it was looked for": "A collection must run between two reads of one command.",
    "an object has more than … parts of … bytes": "Such an object has more than 78 GiB.",
    "another server answers, and its binlog does not go back to the cursor: …": "The decision is tested (tests/unit/plan, tests/property/test_start_laws.py); its way out is that of a purged binlog.",
    "the cursor's previous position is on another server, …": "No test undoes a failover yet: cdc cursor failover goes back, and is tested.",
    "the file cannot be used: it ends in …": "It is a defect of the program: no file is known that causes it.",
    "the folder of the lake's catalog cannot be made: …": "Tests run as a user who may write everywhere; the doctor's finding of it is tested.",
    "the lake continued to epoch … while rows of epoch … were compared": "A failover must end between two statements of one comparison.",
    "the server writes no binlog": "The servers of the tests write one: without it, nothing else of this project can be tested.",
    "the server's binlog does not lead from … to …": "A server must lose a part of the binlog between two windows of one refill.",
    "the table is not at the position that this merge was to reach": "Another writer must write rows with a marker of this project.",
    "the window was drained before with other contents": "Two tasks must drain one window at the same moment, with different source files.",
    "transactions that are in the binlog are not committed after … seconds": "It needs a semi-synchronous replica that does not answer for minutes.",
    "which rows of … were deleted must be asked of the source, and …": "No test makes a lake with more text keys than reselect.max_keys in a partial snapshot yet.",
    "window … does not start where the … cursor is": "Two acks must come at the same moment; the swap of the cursor refuses the second one first.",
    "… was made at …, and the window was planned for another of that name": "Somebody must run RESET between plan and drain; the plan's own message for it is tested.",
}
"""The message of each row, and why no test causes it."""
