"""Messages of ``docs/operations.md`` that no test of that page causes, and what does what their rows say."""

from __future__ import annotations

FOLLOWED_ELSEWHERE = {
    "column … of … is masked or left out, and …, which has its rows or its columns, would store it as it is": (
        "tests/integration/quarantine/test_masks_of_copies.py::test_a_copy_that_the_file_masks_goes_on"
    ),
    "a name or label of the table is no text: …": "tests/integration/drain/test_no_utf8.py::test_names_and_labels_quarantine_their_table_alone",
    "the file of server.public_key cannot be read: …": "tests/integration/mysql/test_passwords_withheld.py::test_the_key_that_the_source_file_names_hides_the_password",
    "the server does not speak MySQL's protocol: …": "tests/integration/mysql/test_passwords_withheld.py::test_a_server_that_nobody_checked_gets_no_password",
    "the drain cursor and the lake cursor are both lost": "tests/integration/plan/test_gaps.py::test_cursors_that_cannot_be_rebuilt_are_refused",
    "column …: … is smaller than …, the smallest value that its partition by truncate can hold": (
        "tests/integration/spark/test_truncated_partitions.py::test_with_another_partition_the_merge_goes_on"
    ),
    "a file of the lake table has the format …, and merges read only Parquet": (
        "tests/integration/spark/test_foreign_files.py::test_deletes_of_another_format_are_refused_until_maintenance_writes_the_rows_again"
    ),
    "column … of the lake table has the type …, which a merge does not write": "tests/integration/spark/test_foreign_files.py::test_columns_of_other_types_are_written_or_refused",
    "rows of the lake table are deleted by values of nested columns, which merges do not read": (
        "tests/integration/spark/test_foreign_files.py::test_deletes_by_values_of_nested_columns_are_refused"
    ),
    "column … of the lake table takes no null, and a row has no value of it": (
        "tests/integration/spark/test_foreign_files.py::test_a_column_that_another_writer_made_required_is_named"
    ),
    "the lake table asks for files with the compression …": "tests/integration/spark/test_foreign_files.py::test_a_compression_that_spark_does_not_read_is_refused",
    "the lake table is encrypted, and merges write only plain files": "tests/integration/spark/test_foreign_files.py::test_an_encrypted_table_is_refused",
    "the lake table … cannot be read: …; the source dropped the table, so that no snapshot can make it again": (
        "tests/integration/spark/test_lost_lake_files.py::test_a_lost_table_that_the_source_dropped_is_named_until_a_person_gives_it_up"
    ),
    "column …: a date with a zero or impossible part in the key, of which the lake holds dates": (
        "tests/integration/drain/test_key_values.py::"
        "test_a_window_with_such_a_date_leaves_the_table_out_and_a_snapshot_with_texts_follows"
    ),
    "a table changes all the time, so that the position of no SELECT is exact: … tries": "tests/integration/snapshot/test_exact_positions.py::"
    "test_a_table_that_changes_all_the_time_stops_until_it_may_be_locked",
    "a table could not be locked within … seconds": "tests/integration/snapshot/test_exact_positions.py::"
    "test_a_lock_waits_for_open_transactions_and_gives_up",
    "a table cannot be locked: …": "tests/integration/snapshot/test_exact_positions.py::"
    "test_a_table_that_changes_all_the_time_stops_until_it_may_be_locked",
    "the DAGs and operators of lakecdc need Airflow … or later, and this is …": "tests/unit/airflow/test_airflow_versions.py::test_an_older_airflow_is_refused_in_one_sentence",
    "Spark Connect (sc://) is not supported, …": "tests/unit/config/test_spark_master.py::test_spark_connect_is_refused_and_the_error_names_what_to_use",
    "the name of this machine, …, has no address: …": "tests/integration/spark/test_merge_job.py::test_executors_need_an_address_of_the_machine",
    "SPARK_HOME names …, which is not Spark …": "tests/unit/spark/test_gateway.py::test_another_spark_of_the_machine_is_refused_before_it_starts",
    "this is Spark … with Iceberg …: jobs need …": "tests/unit/spark/test_versions.py::test_versions_that_were_not_seen_to_be_right_are_refused",
    "Spark … with Iceberg … cannot commit merges: …": (
        "tests/integration/spark/test_proof.py::test_a_merge_on_an_iceberg_that_commits_otherwise_is_refused_and_changes_nothing"
    ),
    "jars.lock has no … for Spark …": "tests/unit/spark/test_jars.py::test_jars_are_those_of_the_installed_spark",
    "the lake table … has a marker that does not count: …": "tests/integration/spark/test_foreign_changes.py::test_a_lake_table_that_another_writer_changed_stops_and_the_others_continue",
    "this machine's clock is at …, and that of the store at …": "tests/integration/spark/test_clocks_of_workers.py::test_a_worker_whose_clock_is_ahead_merges_nothing_and_the_next_one_everything",
    "this machine's clock is at …, and the last commit of the lake table … is of …": "tests/integration/spark/test_clocks_of_workers.py::test_a_table_whose_last_commit_is_of_the_future_waits_and_the_error_names_both_clocks",
    "there is no lake yet: …": (
        "tests/e2e/test_verify_command.py"
        "::test_a_run_prints_its_own_lines_and_drift_is_an_exit_status_a_report_and_a_line_of_the_status"
    ),
    "the key file of the connection … cannot be read": "tests/integration/airflow/test_connection_hooks.py::test_a_connection_without_the_key_of_a_service_account_says_what_it_lacks",
    "the connection to … broke: …": "tests/integration/mysql/test_ssh_tunnel.py::test_a_bastion_that_dies_is_named_and_a_retry_works",
    "… answers, and does not reach the server: …": "tests/integration/mysql/test_ssh_tunnel.py::test_another_server_takes_over_only_if_the_bastion_says_that_the_first_is_away",
    "the host key of … is not accepted: it shows …, which …": "tests/integration/mysql/test_ssh_tunnel.py::test_a_host_key_must_be_known",
    "… refuses the log-in of …: …": "tests/integration/mysql/test_ssh_tunnel.py::test_log_ins_by_key_passphrase_agent_and_password",
    "… does not allow the connection: …": "tests/integration/mysql/test_ssh_tunnel.py::test_a_bastion_that_allows_no_connections_is_refused",
    "the Spark server cannot change … while it runs": "tests/integration/spark/test_spark_server.py::test_a_setting_that_only_the_servers_start_can_have_is_refused",
    "the Spark server does not answer: …": "tests/integration/spark/test_spark_server.py::test_a_server_that_is_killed_and_started_again_loses_nothing",
    "the Spark server does not know the job: …": "tests/integration/spark/test_spark_server.py::test_a_server_that_is_killed_and_started_again_loses_nothing",
    "the job was cancelled on the Spark server": "tests/integration/spark/test_spark_server.py::test_a_cancelled_job_leaves_the_server_and_other_jobs_alone",
    "XA transactions are in use at the server, and this user may not see which are prepared": "tests/integration/plan/test_begin_xa.py::test_the_error_of_a_user_without_xa_privilege_names_the_grant",
    "XA transactions are prepared, and their rows would be missed here when they are committed: …": "tests/integration/plan/test_begin_xa.py::test_a_source_does_not_begin_while_a_transaction_stays_prepared",
    "a table cannot be read at the moment: …": "tests/integration/drain/test_unreadable_tables.py::test_a_locked_table_is_named_and_retried",
    "batch … is not the oldest in flight": "tests/unit/consumers/test_subscription.py::test_batches_are_acknowledged_in_the_order_in_which_they_were_got",
    "changes up to … must be read again, and only those up to … have been read": "tests/integration/plan/test_start.py::test_a_rewind_can_be_reverted_only_before_its_changes_are_read",
    "column … is kept in the format before MySQL 5.6, and MariaDB's binlog does not contain its fraction": "tests/integration/drain/test_drain_rare_types.py::test_old_temporals_of_mariadb_stop_unless_promised_to_be_whole",
    "could not …: …": "tests/integration/store/test_full_disk.py::test_a_full_disk_stops_a_window_which_continues_when_there_is_space",
    "rows cannot be read back from the source: …": "tests/integration/spark/test_reselect.py::test_whole_rows_come_from_the_log_when_the_source_cannot_be_asked",
    "rows were decoded before the statement that rolls them back": "tests/unit/binlog/test_rolled_back.py::test_a_transaction_that_ends_in_rollback_leaves_no_row",
    "tables are left out of the merge: …": "tests/integration/spark/test_foreign_changes.py::test_with_quarantine_the_table_is_quarantined_and_released",
    "the Airflow connection … has no …": "tests/integration/airflow/test_connection_hooks.py::test_a_server_that_does_not_answer_and_a_wrong_field_are_named",
    "the Airflow connection … cannot be used: …": "tests/integration/airflow/test_connection_hooks.py::test_a_server_that_does_not_answer_and_a_wrong_field_are_named",
    "the XA transaction … is committed, but its rows are in no batch: it was prepared before this source began, or its batch was removed": "tests/integration/spark/test_failover.py::test_new_snapshots_of_all_tables_replace_a_transaction_whose_batch_was_collected",
    "the binlog does not contain all columns of some rows: …": "tests/integration/spark/test_resnapshot.py::test_a_new_snapshot_leads_out_of_a_merge_that_an_incomplete_row_stops",
    "the lake table … lacks what was merged: its column … was dropped": "tests/integration/spark/test_foreign_changes.py::test_a_lake_table_that_another_writer_changed_stops_and_the_others_continue",
    "the source dropped …, and the layout of the lake table needs it, or did before": "tests/integration/spark/test_layouts.py::test_a_column_of_the_layout_or_of_an_earlier_one_is_not_dropped",
    "the merge was planned again while it ran": "tests/integration/spark/test_resnapshot.py::test_a_merge_that_was_withdrawn_and_still_runs_does_no_harm",
    "the certificate of the S3 server … is not accepted: …": "tests/integration/store/test_s3_over_tls.py::test_another_authority_or_none_is_one_error_with_its_way_out",
    "the connection … is a service principal, and a store takes none from a connection": "tests/integration/airflow/test_connection_hooks.py::test_a_connection_without_a_secret_of_azure_says_what_it_lacks",
    "the certificate of the Azure server … is not accepted: …": "tests/contract/test_azure_faults.py::test_a_certificate_of_an_authority_of_ones_own_is_named",
    "the file of store.ca cannot be read: …": "tests/integration/store/test_s3_over_tls.py::test_a_file_that_cannot_be_read_is_named",
    "the server does not send transactions without GTIDs while its gtid_mode is ON": "tests/integration/plan/test_gtid_modes.py::test_a_failover_loses_no_transaction_without_a_gtid",
    "binlog_storage_engine is …: this binlog has no positions, and is not read": "tests/unit/mysql/test_unsupported.py::test_an_innodb_binlog_of_mariadb_is_refused_with_the_setting_that_avoids_it",
    "the server is a reader of an Aurora cluster: only the writer has the binlog": "tests/unit/mysql/test_unsupported.py::test_a_reader_of_aurora_is_refused_and_its_writer_is_not",
    "the server is …, which is not supported": "tests/integration/mysql/test_managed_servers.py::test_plan_and_doctor_refuse_a_foreign_server_before_anything_is_written",
    "the server ended the binlog stream before the window's end": "tests/integration/drain/test_drain_faults.py::test_a_connection_cut_at_any_byte_leaves_nothing",
    "process … on … holds the lock …": "tests/contract/test_local_processes.py::test_a_writer_that_is_stopped_is_named_and_its_successor_can_be_tried_again",
    "the lake's catalog says that the log-in is over: …": "tests/unit/lake/test_catalog_answers.py::test_an_error_response_of_a_catalog_says_whether_a_retry_helps",
    "could not …: the session token is over: …": "tests/unit/spark/test_faults.py::test_java_errors_are_translated_to_the_error_tree",
    "the cursor continues in a new epoch: …": "tests/integration/plan/test_start.py::test_a_source_goes_on_with_what_came_after_a_purge_of_read_files",
    "the server gave GTIDs to two transactions each: …": "tests/integration/plan/test_reverted_server.py::test_gtids_that_are_used_twice_are_not_acknowledged",
    "the server refuses to read a table: …": "tests/integration/drain/test_unreadable_tables.py::test_a_table_that_the_user_may_not_read_is_named",
    "…; the lake table keeps deleted rows, versions or changes, which the source does not have": "tests/integration/spark/test_redefined_tables.py::test_a_lake_table_that_keeps_history_begins_again_when_a_person_says_so",
    "the source … at …, and the source file stops the table there (schema_changes.…: stop)": "tests/integration/spark/test_schema_changes.py::test_stopped_tables_continue_where_they_were_once_the_source_file_says_how",
    "the source … at …, and the table waits for an answer (schema_changes.…: ask)": "tests/integration/spark/test_schema_changes.py::test_asked_tables_continue_where_they_were_once_somebody_has_answered",
    "the type of a column changed within a batch so that no type holds both: …": "tests/unit/consumers/test_batch.py::test_types_that_cannot_be_united_are_reported_and_versions_can_be_read_separately",
    "the unit belongs to epoch …, and the cursor is in epoch …": "tests/integration/plan/test_failover.py::test_a_standby_takes_over_in_the_middle_of_a_workload",
    "… has rows with …, and … keeps rows by …": "tests/integration/spark/test_backfill_other_key.py::test_a_copy_is_built_from_the_snapshot_with_the_new_key_on",
}
"""The message of each row, and the test that causes it and does what the row says, to equal tables or to what the row promises."""

CAUSED_ONLY = {
    "column …: a value of ENUM or SET that looks like another one, in a key": (
        "tests/integration/drain/test_key_values.py::test_a_key_that_select_shows_like_another_is_refused",
        "Text that is not valid has the same way out, and the tests of its row follow it.",
    ),
    "no table was compared: …": (
        "tests/unit/airflow/test_verify.py::test_a_comparison_of_no_table_fails_the_task",
        "What the reason asks for is on the rows of its message.",
    ),
    "no window was compared: …": (
        "tests/unit/airflow/test_second_decoder.py::test_a_day_of_which_no_window_was_compared_fails_the_task",
        "A purged binlog cannot be read again.",
    ),
    "the cursors cannot be made again: no cut and no window is stored that shows where the source was": (
        "tests/integration/plan/test_gaps.py::test_cursors_that_cannot_be_rebuilt_are_refused",
        "The tests of a new name for a source do what the row says.",
    ),
    "the lake's catalog refuses the log-in: …": (
        "tests/unit/lake/test_catalog_answers.py::test_an_error_response_of_a_catalog_says_whether_a_retry_helps",
        "The catalogs of the tests have one user, who may do everything.",
    ),
    "could not …: no permission: …": (
        "tests/unit/spark/test_faults.py::test_java_errors_are_translated_to_the_error_tree",
        "The stores and catalogs of the tests have one user, who may do everything.",
    ),
    "a statement whose tables are not understood: …": (
        "tests/unit/binlog/test_control_events.py::test_a_statement_whose_tables_are_not_understood_stops_the_window",
        "no statement that a server takes is known to be read so",
    ),
    "a merge is in flight, and it has not published its cut": (
        "tests/integration/test_pipeline.py::test_the_lake_is_acked_only_when_its_cut_exists",
        "Every test that runs a merge and its ack does what the row says.",
    ),
    "the source file names no Spark server": (
        "tests/unit/cli/test_spark_jobs.py::test_a_source_without_a_server_has_no_list",
        "The jobs of a server are listed by tests/integration/spark/test_spark_server.py.",
    ),
    "the Airflow connection … names no Spark server: …": (
        "tests/unit/airflow/test_spark_connections.py::test_any_other_connection_is_refused_by_its_name",
        "Jobs run on the servers of right connections in tests/integration/spark/test_spark_server.py.",
    ),
    "the Airflow connection … of the type … names no Spark": (
        "tests/unit/airflow/test_spark_connections.py::test_any_other_connection_is_refused_by_its_name",
        "Connections of the right types run jobs in tests/integration/spark/test_spark_server.py.",
    ),
    "the source no longer has the Spark server on which this job runs": (
        "tests/unit/airflow/test_spark_connections.py::test_the_connection_of_a_task_wins_over_the_file",
        "Merges are cleared and start their jobs again in tests/integration/airflow/test_treatments.py.",
    ),
    "the Spark server refuses the request: …": (
        "tests/integration/spark/test_spark_server.py::test_a_request_without_the_token_is_refused",
        "The other tests of that file send the token.",
    ),
    "what answers at merge.spark_server.url is no Spark server of this version": (
        "tests/integration/spark/test_spark_server.py::test_an_address_of_something_else_is_refused",
        "The other tests of that file name the right address.",
    ),
    "tables that share a lake table have different layouts: …": (
        "tests/unit/lake/test_layout.py::test_tables_that_share_a_lake_table_have_one_layout",
        "The error is made from a source file alone; a correct file is merged by test_layouts.py.",
    ),
    "the layout cannot be used: …": (
        "tests/integration/spark/test_layouts.py::test_a_layout_that_the_columns_do_not_allow_stops_the_merge_before_the_table_exists",
        "Correct layouts are merged by the other tests of that file.",
    ),
    "the lake table has format version …, and the source file says …": (
        "tests/integration/spark/test_layouts.py::test_format_2_becomes_3_but_not_the_reverse",
        "A new snapshot of a dropped lake table is what test_operations_ways_out.py does.",
    ),
    "a row image without the table's key": (
        "tests/unit/binlog/test_images.py::test_a_corrupt_row_image_stops_the_window_with_its_position",
        "The error is made from values: a server writes the key into every image that it writes.",
    ),
    "a snapshot chunk comes after windows that are already merged": (
        "tests/unit/merge/test_plan.py::test_a_replay_with_a_gap_is_refused",
        "A table is not merged while its snapshot is read, so that no command makes a chunk late: the guard is tested with values.",
    ),
    "tables whose snapshots are complete lack changes that were merged meanwhile, and …": (
        "tests/unit/merge/test_held.py::test_a_missing_window_stops_the_tables_that_need_it",
        "A new snapshot of a table whose batches are gone is what test_operations_ways_out.py does.",
    ),
    "an object was replaced while it was read": (
        "tests/contract/test_store_faults.py::test_an_object_that_is_replaced_while_it_is_read_is_not_mixed",
        "It says to try again. Objects on S3 are replaced between two ranges of one read, which the contract suite does.",
    ),
    "could not …: no keys for the storage: …": (
        "tests/unit/spark/test_faults.py::test_missing_settings_of_executors_have_a_hint",
        "It needs a machine without keys and without a role, and a source file that names none.",
    ),
    "could not …: no region for S3: …": (
        "tests/unit/spark/test_faults.py::test_missing_settings_of_executors_have_a_hint",
        "It needs a catalog that returns no region, and a machine without one; S3 servers of tests have one in the source file.",
    ),
    "source and lake differ: …": (
        "tests/integration/airflow/test_tasks.py::test_the_verify_dag_runs_separately_and_fails_for_wrong_rows",
        "It is the text of a task; cdc verify reports the same rows, and test_operations_ways_out.py runs *Rows that are wrong* for them.",
    ),
    "the server answers with an error: …": (
        "tests/unit/model/test_refusals.py::test_an_error_about_no_table_is_the_servers_answer",
        "The message is the server's own, and the row says no more.",
    ),
    "the server is a replica with …=OFF: its binlog lacks the changes that it replicates": (
        "tests/integration/plan/test_unlogged_replica.py::test_a_server_that_becomes_such_a_replica_is_refused_at_the_next_step",
        "The refusal and its hint are tested on real servers; new snapshots of all tables are those of the procedure.",
    ),
    "… is OFF, the server has replicated changes, and this user may not see whether it still does": (
        "tests/integration/plan/test_unlogged_replica.py::test_the_documented_user_sees_or_refuses_such_a_replica",
        "The refusal and its hint are tested on real servers; new snapshots of all tables are those of the procedure.",
    ),
    "… answers instead of …, and its binlog lacks the changes that it replicated": (
        "tests/integration/plan/test_unlogged_replica.py::test_a_standby_that_did_not_log_what_it_replicated_cannot_take_over",
        "The refusal and its hint are tested on real servers; new snapshots of all tables are those of the procedure.",
    ),
    "the source dropped …, and … share the lake table": (
        "tests/unit/merge/test_column_policy.py::test_a_column_of_a_shared_lake_table_is_not_dropped",
        "The error is made from values, without a server; that a kept column stays is shown by test_schema_changes.py.",
    ),
}
"""The message of each row, the test that causes it, and why nothing does what the row says after this cause."""

NOT_CAUSED = {
    "a batch was removed while it was looked for": "A collection must run between two reads of one command; a moment later the merge says that a batch has no manifest.",
    "an object has more than … parts of … bytes": "Such an object has more than 78 GiB.",
    "the file cannot be used: it ends in …": "It is a defect of the program: no file is known that causes it.",
    "the server's binlog does not lead from … to …": "A server must lose the end of its binlog and keep the name and the time of the file: a reset or a purge has its own message.",
}
"""The message of each row, and why no test causes it."""
