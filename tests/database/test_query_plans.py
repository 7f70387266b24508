"""Tests that every query finds its rows by key, in a full database and in one that was empty when the query was planned
(a plan is kept while its tables grow). A query that is missing in the tables below fails a test.
"""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest

from domain.batches import Batch
from domain.dispatch import RequestWrites
from domain.history import month_bounds, month_of
from store.pool import SESSION
from store.postgres import PostgresStore, open_store
from store.queries import load, queries
from tests.builders import NOW
from tests.database.plans import blocks, explained, plan_of, walk
from tests.pg import database
from tests.worlds import a_registered_host, a_report, a_submitted_batch, an_assignment, the_version, waiting_of

LARGE = {
    "instance",
    "job",
    "job_todo",
    "job_class",
    "job_template",
    "batch",
    "batch_count",
    "host",
    "host_app_version",
    "upload",
    "instance_stderr",
    "volunteer",
    "file",
    "finished_job_2027_01",
    "finished_instance_2027_01",
    "forecast",
    "forecast_score",
    "batch_forecast",
    "batch_order",
    "batch_breakdown",
    "web_session",
    "api_token",
    "sign_in_attempt",
    "known_network",
    "act",
    "submission_key",
    "trickle",
    "shared_quota",
    "credit",
    "participation",
    "team",
    "sample",
    "event",
    "notification",
    "delivery",
}

SLOW_IN_GENERATION_1 = "host_percentile_1_x_host_id_app_version_id_idx"
BY_KEY = {  # query -> the indexes it must use
    "last_ordering": {"host_pkey"},
    # API and console
    "session_of_person": {"web_session_pkey", "person_pkey"},
    "session_of_volunteer": {"web_session_pkey", "volunteer_pkey"},
    "renew_web_session": {"web_session_pkey"},
    "end_web_session": {"web_session_pkey"},
    "end_sessions_of_person": {"web_session_by_person"},
    "end_sessions_of_volunteer": {"web_session_by_volunteer"},
    "list_web_sessions": {"web_session_by_person"},
    "drop_ended_sessions": {"web_session_by_end", "web_session_pkey"},
    "token_by_hash": {"api_token_token_hash_key", "person_pkey"},
    "list_api_tokens": {"api_token_pkey"},
    "note_token_use": {"api_token_pkey"},
    "revoke_api_token": {"api_token_pkey"},
    "write_attempt": {"sign_in_attempt_pkey"},
    "known_network": {"known_network_pkey"},
    "drop_known_networks": {"known_network_by_time", "known_network_pkey"},
    "drop_old_attempts": {"sign_in_attempt_by_time", "sign_in_attempt_pkey"},
    "list_acts": {"act_pkey"},
    "list_acts_of": {"act_by_who"},
    "act_before": {"act_by_who"},
    "batch_at": {"batch_pkey"},
    "act_range": {"act_pkey"},
    "latest_actions": {"act_pkey"},
    "person_names": {"person_pkey"},
    "batches_with": {"batch_pkey", "batch_count_pkey"},
    # figures over time
    "delete_samples": {"sample_pkey"},
    "last_sample": {"sample_pkey"},
    "list_samples": {"sample_pkey"},
    # the history of usage
    "last_usage_month": {"usage_history_pkey"},
    "thin_usage_days": {"usage_history_pkey"},
    "usage_report": {"usage_history_pkey"},
    # repeated submissions
    "forget_submission_key": {"submission_key_pkey"},
    "forget_submission_keys": {"submission_key_by_time", "submission_key_pkey"},
    "note_answer": {"submission_key_pkey"},
    "submitted_before": {"submission_key_pkey"},
    # messages of apps
    "forget_trickles": {"trickle_by_time", "trickle_pkey"},
    "keep_trickles": {"trickle_instance_id_sent_at_said_key"},
    "trickles_of_instance": {"trickle_pkey"},
    # a request reads
    "who_asks": {
        "volunteer_authenticator_hash_key",
        "host_pkey",
        "host_by_volunteer",
        "shared_quota_pkey",
        "instance_on_host",
        "job_pkey",
        "upload_pkey",
        "credit_pkey",
        "participation_pkey",
        "team_pkey",
    },
    "versions_of_hosts": {"host_app_version_pkey"},
    "instances_on_hosts": {"instance_on_host"},
    "set_host_labels": {"host_pkey"},
    "instances_reported": {"instance_pkey", "job_pkey", "upload_pkey"},
    # and writes
    "move_instances": {"instance_pkey", "instance_job_volunteer", "host_pkey"},
    "lock_claimed": {"host_pkey", "instance_pkey", "instance_on_host"},
    "abort_lost": {"instance_on_host"},
    "lock_in_progress": {"instance_on_host", "host_by_volunteer"},
    "write_group": {
        "host_pkey",
        "instance_pkey",
        "instance_job_volunteer",
        "job_pkey",
        "batch_pkey",
        "job_class_pkey",
        "job_template_pkey",
    },
    "sent_jobs": {"instance_pkey", "job_pkey", "job_template_pkey"},
    "change_statistics": {"host_app_version_pkey"},
    "grant_credit": {"participation_pkey"},
    "participation_of": {"participation_pkey"},
    "change_team": {"team_pkey"},
    "lock_team": {"team_pkey"},
    "join_team": set(),
    "leave_all": {"participation_by_team"},
    "members_of_team": {"participation_by_team", "volunteer_pkey", "credit_pkey"},
    "name_founder": {"team_pkey"},
    "oldest_member": {"participation_by_team"},
    "team_by_id": {"team_pkey", "participation_by_team"},
    "teams_of_founder": {"team_by_founder"},
    "drop_host": {"host_pkey", "instance_on_host", "credit_pkey", "host_app_version_pkey"},
    "drop_team": {"team_pkey", "credit_pkey"},
    "forget_volunteer": {"volunteer_pkey", "participation_pkey", "web_session_by_volunteer", "host_by_volunteer"},
    "rename_volunteer": {"volunteer_pkey"},
    # notifications
    "app_failures": {"instance_failed", "batch_count_pkey", "batch_watch_pkey", "batch_pkey"},
    "bound_notifications": {"notification_of_delivery"},
    "claim_deliveries": {"delivery_to_send", "delivery_pkey"},
    "endangered_batches": {"batch_by_deadline", "batch_count_pkey", "forecast_pkey", "event_key_key"},
    "ended_batches": {"batch_pkey", "batch_count_pkey", "event_key_key"},
    "end_attempt_at_delivery": set(),
    "events_of_deliveries": {"notification_of_delivery", "event_pkey"},
    "forget_deliveries": {"delivery_by_time"},
    "forget_events": {"event_by_time"},
    "list_deliveries": {"delivery_pkey", "notification_of_delivery"},
    "make_deliveries": {"notification_of_delivery", "delivery_by_subscription"},
    "watch_active_batches": {"batch_pkey"},
    "watch_results": {"batch_count_pkey"},
    "watch_no_ended_batches": {"batch_pkey", "event_key_key"},
    "set_volunteer_email": {"volunteer_pkey"},
    "volunteer_by_id": {"volunteer_pkey", "volunteer_authenticator_hash_key"},
    "job_classes": {"job_class_pkey"},
    "note_networks": {"host_pkey"},
    "quotas_of_hosts": {"host_pkey", "shared_quota_pkey"},
    "lock_quotas": {"shared_quota_pkey"},
    "forget_quotas": {"shared_quota_by_day", "shared_quota_pkey"},
    "charge_quotas": {"shared_quota_pkey"},
    "earn_quotas": {"shared_quota_pkey"},
    # refill
    "ready_batches": {"batch_to_send", "batch_pkey", "batch_count_pkey"},
    "paused_or_blocked": {"batch_in_order", "batch_pkey", "batch_count_pkey"},
    "ready_afap_or_due": {"batch_to_send", "batch_pkey", "batch_count_pkey", "instance_fresh"},
    "work_before": {"batch_to_send", "batch_count_pkey", "instance_fresh"},
    "big_batches": {"batch_to_send", "batch_count_pkey", "job_class_by_batch"},
    "queued_of_classes": {"batch_pkey", "instance_fresh", "instance_urgent", "job_pkey"},
    "standing_leases": {"batch_pkey", "host_pkey", "instance_on_host"},
    "lock_drained": {"batch_pkey"},
    "unmark_drained": {"batch_pkey", "batch_count_pkey"},
    "failures_of_versions": {"instance_failed"},
    "failures_of_version": {"instance_failed", "instance_stderr_pkey"},
    "in_progress_of_version": {"instance_on_host"},
    "use_of_versions": {"host_app_version_by_version"},
    "volunteers_with": {"volunteer_pkey", "host_by_volunteer", "credit_pkey"},
    "newest_volunteers": {"volunteer_pkey"},
    "fresh_instances": {"instance_fresh", "instance_job_volunteer", "job_pkey"},
    "urgent_instances": {"instance_urgent", "instance_job_volunteer"},
    "tail_instances": {"instance_fresh"},
    "still_unsent": {"instance_pkey"},
    # validate
    "unsettled_jobs": {"job_todo_in_order", "job_pkey"},
    "instances_of_jobs": {"instance_job_volunteer", "upload_pkey"},
    "lock_instances_of_jobs": {"instance_job_volunteer"},
    "lock_jobs": {"job_pkey"},
    "lock_marks": {"job_todo_pkey"},
    "renew_marks": {"job_todo_pkey"},
    "lock_batches": {"batch_pkey"},
    "step_instances": {"instance_pkey"},
    "settle_jobs": {"job_pkey"},
    "hasten_instances": {"instance_job_volunteer"},
    "keep_copies": {"instance_job_volunteer"},
    "insert_instances": {"instance_job_volunteer"},
    "unmark_jobs": {"job_todo_pkey"},
    "complete_batches": {"batch_count_pkey"},
    "list_restrictions": {"batch_pkey"},
    "batches_resumed": {"batch_in_order", "batch_pkey"},
    "count_stopped_batches": {"batch_in_order", "instance_fresh"},
    # sweep
    "overdue_instances": {"instance_by_timeout", "job_pkey"},
    "time_out_instances": {"instance_pkey"},
    "move_open_deadlines": {"instance_by_timeout", "instance_pkey", "host_app_version_pkey"},
    "count_due": {"instance_by_due", "host_app_version_pkey"},
    # the last jobs of batches
    "batch_tails": {"batch_in_order", "batch_count_pkey"},
    "open_jobs_of_batch": {"job_by_batch", "job_class_pkey", "batch_pkey", "app_pkey"},
    "copy_use": {"job_by_batch", "job_class_pkey"},
    "tail_instances_of_jobs": {"instance_job_volunteer", "host_app_version_pkey"},
    "take_tail_copies": {"job_pkey", "instance_job_volunteer"},
    # move to the history
    "ended_jobs": {"job_by_batch", "batch_pkey"},
    "movable_jobs": {"job_pkey", "job_todo_pkey", "instance_job_volunteer"},
    "finish_instances": {"instance_job_volunteer", "instance_stderr_pkey", "upload_pkey"},
    "finish_jobs": {"job_pkey"},
    # uploads
    "expected_output": {"instance_pkey", "upload_pkey", "finished_instance_2027_01_pkey"},
    "record_upload": {"instance_pkey", "upload_pkey"},
    "record_finished_upload": {"finished_instance_2027_01_pkey"},
    "begin_comparisons": {"job_todo_pkey"},
    # submit, abort
    "mark_again": {"batch_in_order", "batch_count_pkey", "batch_pkey"},
    "active_shares": {"batch_by_submitter"},
    "batch_created_at": {"batch_pkey"},
    "cancel_open_jobs_of_batch": {"job_by_batch", "job_pkey"},
    "cancel_unsent_of_batch": {"instance_fresh", "instance_urgent", "instance_pkey"},
    "unneeded_files": {"instance_pkey", "upload_pkey", "finished_instance_2027_01_pkey"},
    "unfinished_aborts": {"batch_pkey"},
    "forget_abort": {"job_by_batch", "instance_fresh", "instance_urgent"},
    # pages
    "batch_by_id": {"batch_pkey", "batch_count_pkey"},
    "classes_of_batch": {"job_class_by_batch"},
    "host_by_id": {"host_pkey"},
    "instances_of_job": {"instance_job_volunteer", "upload_pkey"},
    "job_by_id": {"job_pkey", "job_template_pkey"},
    "job_of_instance": {"instance_pkey", "finished_instance_2027_01_pkey"},
    "list_hosts": {"host_pkey"},
    "list_jobs": {"job_by_batch", "job_template_pkey"},
    "returned_instances": {"instance_pkey", "upload_pkey"},
    "returned_finished_instances": {"finished_instance_2027_01_pkey"},
    "finished_job_by_id": {"finished_job_2027_01_pkey", "job_template_pkey"},
    "finished_instances_of_job": {"finished_instance_2027_01_job_id_idx"},
    "list_finished_jobs": {"finished_job_2027_01_batch_id_job_id_idx", "job_template_pkey"},
    "caller_of_host": {"host_pkey", "volunteer_pkey"},
    "waiting_batches": {"batch_to_send", "batch_count_pkey", "instance_urgent", "job_class_by_batch"},
    "sizes_of_batches": {"batch_pkey", "job_class_by_batch"},
    "finished_outputs": {"finished_instance_2027_01_pkey"},
    "batch_names": {"batch_pkey"},
    "whose_batches": {"batch_pkey"},
    "batches_by_id": {"batch_pkey", "batch_count_pkey"},
    "active_batches_sorted": {"batch_in_order", "batch_count_pkey", "batch_forecast_pkey", "forecast_pkey"},
    "active_counts": {"batch_in_order"},
    "listed_batches": {"batch_pkey", "batch_count_pkey"},
    "active_totals": {"batch_in_order", "batch_count_pkey"},
    "batches_in_need": {"batch_in_order", "batch_count_pkey", "batch_forecast_pkey", "forecast_pkey"},
    "apps_without_version": {"batch_in_order"},
    "batches_without_version": {
        *("batch_in_order", "batch_pkey", "batch_count_pkey"),
        *("instance_fresh", "instance_urgent"),
    },
    "hosts_that_fail": {"instance_failed", "instance_of_volunteer", "host_pkey"},
    "failing_versions": {"instance_failed", "host_app_version_by_version"},
    "upkeep": {"job_todo_in_order"},
    "unsent_extras": {"instance_urgent"},
    "instances_of_batch": {"instance_of_batch", "instance_fresh", "instance_pkey"},
    "failures_of_batch": {
        "instance_of_batch",
        "instance_stderr_pkey",
        "finished_instance_2027_01_batch_id_state_expr_instance_id_idx",
    },
    "batch_to_retry": {"batch_pkey", "finished_job_2027_01_batch_id_job_id_idx"},
    "class_counts": {"job_by_batch", "finished_job_2027_01_batch_id_job_id_idx"},
    "failed_jobs_of_batch": {"job_by_batch"},
    "jobs_to_copy": {"job_by_batch"},
    "finished_jobs_to_copy": {"finished_job_2027_01_batch_id_job_id_idx"},
    "templates_of_batch": {"job_template_by_batch"},
    "reopen_jobs": {"job_pkey", "instance_job_volunteer"},
    "reopen_batch": {"batch_pkey", "forecast_pkey"},
    "finished_instances_of_batch": {"finished_instance_2027_01_batch_id_state_expr_instance_id_idx"},
    "latest_instances_of_batch": {"instance_of_batch"},
    "latest_finished_instances": {"finished_instance_2027_01_batch_id_state_expr_instance_id_idx"},
    "held_instances": {"instance_on_host", "batch_pkey"},
    "hosts_of_volunteer": {"host_by_volunteer", "instance_on_host"},
    "host_of_volunteer": {"host_pkey", "instance_on_host"},
    "held_of_volunteer": {"host_by_volunteer", "instance_on_host", "batch_pkey"},
    "results_of_volunteer": {"instance_of_volunteer", "batch_pkey"},
    "totals_of_volunteer": {"host_by_volunteer", "instance_on_host", "host_app_version_pkey"},
    "host_names": {"host_pkey"},
    "hosts_looked_at": {"host_pkey"},
    "selected_hosts": {"host_pkey", "instance_on_host"},
    "slow_hosts": {SLOW_IN_GENERATION_1, "host_app_version_pkey"},
    "listed_hosts": {"host_pkey", "instance_on_host", "host_app_version_pkey"},
    "results_looked_at": {"instance_of_volunteer"},
    "restricted_hosts": {"host_pkey", "host_by_volunteer"},
    "instances_of_host": {"instance_on_host", "instance_of_volunteer", "batch_pkey"},
    "hosts_of_email": {"volunteer_email_key", "host_by_volunteer"},
    # forecasts of completion: samples are not read by key
    "forecast_batch": {"batch_pkey", "job_class_by_batch"},
    "forecast_few_havs": {"host_app_version_by_version"},
    "forecast_jobs": {"job_by_batch", "job_class_pkey", "instance_job_volunteer"},
    "forecast_instances": {"instance_job_volunteer"},
    "forecast_havs": {"host_app_version_pkey", "host_pkey"},
    "forecast_havs_few": {"host_app_version_by_version", "host_pkey"},
    "forecast_havs_sampled": {"host_pkey"},
    "forecast_hosts": set(),
    "forecast_sent": {"job_class_pkey"},
    "forecast_places": {"batch_in_order", "batch_count_pkey", "job_class_by_batch"},
    # the order of batches
    "batches_to_order": {"batch_pkey", "batch_count_pkey", "job_class_by_batch"},
    "used_of_estimates": {"job_by_batch", "instance_job_volunteer", "host_pkey"},
    "correct_logical_times": {"batch_pkey"},
    "lock_places": {"batch_pkey"},
    "move_batches": {"batch_pkey"},
    "drop_batch_orders": {"batch_order_pkey"},
    "drop_breakdowns": {"batch_breakdown_pkey"},
    "list_breakdowns": {"batch_breakdown_pkey"},
    "batches_around": {"batch_in_order", "instance_fresh"},
    "batches_with_fresh": {"batch_pkey", "instance_fresh"},
    "batches_in_order": {"batch_in_order", "instance_fresh"},
    "places_of_batches": {"batch_to_send", "instance_fresh"},
    "set_moved": {"batch_pkey"},
    "set_service": {"batch_pkey", "batch_breakdown_pkey"},
    "release_batch": {"batch_pkey"},
    "which_batches": {"batch_pkey"},
    "set_deadline": {"batch_pkey"},
    "ended_batch_to_correct": {"batch_pkey", "batch_count_pkey", "job_class_by_batch", "batch_order_pkey"},
    "set_account": {"batch_pkey", "batch_count_pkey"},
    "set_user_priority": {"batch_pkey"},
    # stored forecasts
    "forecast_health": {"batch_in_order", "batch_forecast_pkey"},
    "forecast_ages": {"batch_in_order", "batch_forecast_pkey", "batch_count_pkey", "forecast_pkey"},
    "forecast_standing": {
        "batch_pkey",
        "batch_count_pkey",
        "batch_forecast_pkey",
        "job_class_by_batch",
        "forecast_pkey",
    },
    "forecast_made_at": {"batch_forecast_pkey"},
    "publish_completion": {"batch_pkey"},
    "thin_forecasts": {"forecast_pkey"},
    "ended_forecasts": {"batch_forecast_pkey", "batch_pkey", "batch_count_pkey", "job_class_by_batch"},
    "checkpoint_forecasts": {"forecast_pkey"},
    "forget_forecast_age": {"batch_forecast_pkey"},
    "thin_ended_forecasts": {"forecast_pkey"},
    "drop_forecast_terms": {"forecast_pkey"},
    "forecast_scores": {"forecast_score_by_app"},
    "last_forecasts": {"batch_forecast_pkey", "forecast_pkey"},
    "list_forecasts": {"forecast_pkey"},
    "forecast_curve": {"forecast_pkey"},
    "job_ends": {"batch_pkey", "job_by_batch", "finished_job_2027_01_batch_id_job_id_idx"},
    # people and files
    "file_ids": {"file_name_key"},
    "files_that_differ": {"file_name_key"},
    "sign_file": {"file_name_key"},
    "sign_unsigned_file": {"file_name_key"},
    "update_volunteer": {"volunteer_pkey"},
    "update_volunteer_password": {"volunteer_pkey"},
    "volunteer_by_email": {"volunteer_email_key"},
}

READS_ALL = {  # query -> why it may scan a large table
    "project_figures": "every ten minutes at most, for the public status page",
    "teams_named": "on demand: part of a name, among teams, which are few",
    "find_volunteers": "on demand: part of a name, among volunteers and hosts",
    "export_totals": "once a day, for the statistics export",
    "exported_hosts": "once a day, for the statistics export",
    "exported_teams": "once a day, for the statistics export",
    "exported_volunteers": "once a day, for the statistics export",
    "count_active": "once per submission if batches are limited: counts the active ones",
    "count_active_hosts": "every ten minutes, for the samples of figures",
    "reference_host": "once an hour: medians over the hosts",
    "alike_hosts": "once an hour for homogeneous redundancy; at most once in ten minutes for forms",
    "redundant_batches": "once an hour: the classes of waiting batches",
    "count_web_sessions": "occasionally for the metrics: signed-in users",
    "counters_that_differ": "a recount, for inspections and tests",
    "check_batches": "an inspection reads whole tables, on a separate connection",
    "check_credit": "an inspection reads whole tables, on a separate connection",
    "check_doubled": "an inspection reads whole tables, on a separate connection",
    "check_ended_jobs": "an inspection reads whole tables, on a separate connection",
    "sessions_that_lock": "run once after a restore, while no node serves",
    "greatest_instance_id": "run once after a restore, while no node serves",
    "forget_uploads_of_unsent": "run once after a restore, while no node serves",
    "renumber_unsent": "run once after a restore, while no node serves",
    "advance_sequences": "run once after a restore, while no node serves",
    "check_files_known": "an inspection reads whole tables, on a separate connection",
    "check_finished_uploads_page": "an inspection reads whole tables, on a separate connection",
    "check_open_jobs": "an inspection reads whole tables, on a separate connection",
    "check_orphans": "an inspection reads whole tables, on a separate connection",
    "check_outputs": "an inspection reads whole tables, on a separate connection",
    "check_times": "an inspection reads whole tables, on a separate connection",
    "check_uploads_page": "an inspection reads whole tables, on a separate connection",
    "end_batch_as_aborted": "an operator's command: may read the active batches",
    "inherit_statistics": "once per new app version: reads its predecessor's rows",
    "list_app_version_files": "files of app versions, few among the inputs, are read by key or by a scan",
    "list_volunteers": "an administrator's page",
    "pool_speed": "once per submitted batch: sums over the hosts",
    "ranked_hosts": "a ranking of hosts reads all of them, on a separate connection",
    "sampled_hosts": "an operator's simulation: ids of active hosts, on a separate connection",
    "sampled_versions": "one page in a hundred of the hosts' rows",
    "hav_rows": "a ranking of hosts reads all their rows, on a separate connection",
    "refresh_app_turnaround": "once per app and ranking: its last 50 batches",
    "refresh_batch_turnarounds": "once per app and ranking: a sample of its active batches",
    "app_facts": "once per app and ranking: its last 50 batches",
    "hav_standings": "an operator's query: rows of active hosts, on a separate connection",
    "active_hosts": "an operator's query: active hosts, on a separate connection",
    "equipment_of_hosts": "an operator's query: active hosts, on a separate connection",
    "low_turnaround": "once an hour under the rule accelerated: a month's instances, on a separate connection",
    "purge_forecasts": "an operator's command: searches the batches that ended in a month",
    "host_contacts": "once a minute per process: a count of the active hosts",
    "hosts_named": "an operator restricts a host by its name: compares each host's name",
    "sorted_hosts": "an operator's list of hosts in an order without an index",
    "short_batches": "a page of batches: 10,000 hosts at most, where retries wait or results must agree",
    "recent_callers": "an operator's query: active hosts, on a separate connection",
    "active_callers": "once a minute while hosts refuse work: active hosts, on a separate connection",
}

SMALL = {  # reads no large table
    "add_mail_code",
    "add_event",
    "confirm_subscription",
    "delete_subscription",
    "forget_unconfirmed",
    "insert_subscription",
    "list_subscriptions",
    "raise_events",
    "rotate_subscription",
    "set_subscription",
    "subscriptions_with",
    "add_news",
    "drop_news",
    "insert_team",
    "list_news",
    "take_mail_code",
    "set_export_consent",
    "forget_withdrawn",
    "withdrawn_of_kind",
    "note_abort",
    "set_duty_back",
    "count_arrival",
    "forget_arrivals",
    "end_simulation",
    "forget_processes",
    "forget_simulations",
    "insert_simulation",
    "list_processes",
    "failures_of_gone",
    "duty_deadlines",
    "list_simulations",
    "note_process",
    "note_simulation",
    "simulation_by_id",
    "insert_person",
    "insert_web_session",
    "insert_api_token",
    "insert_act",
    "insert_submission_key",
    "list_people",
    "lock_attempt",
    "note_known_network",
    "people_named",
    "person_by_name",
    "update_password",
    "update_person",
    "add_batch_order",
    "add_usage_days",
    "add_usage_windows",
    "count_ordering",
    "lock_edits",
    "lock_edits_alone",
    "lock_ordering",
    "outdate_ordering",
    "drop_grant",
    "drop_limit",
    "drop_usage_windows",
    "drop_restriction",
    "paused_among",
    "put_restriction",
    "end_leases",
    "forget_leases",
    "insert_leases",
    "list_leases",
    "list_grants",
    "list_limits",
    "list_usage",
    "list_usage_windows",
    "memberships_of",
    "ordering_members",
    "permit_account",
    "permit_submitter",
    "put_grant",
    "put_limit",
    "put_membership",
    "standing_of_leaf",
    "write_batch_orders",
    "write_breakdowns",
    "write_grants",
    "write_standings",
    "write_usage",
    "account_by_name",
    "account_name",
    "add_counts",
    "add_finished_month",
    "add_statistics_rows",
    "advance_submitter",
    "app_by_name",
    "app_forecasts",
    "app_name",
    "connection_alive",
    "count_finished",
    "count_sessions",
    "current_cut_points",
    "database_figures",
    "database_now",
    "delete_setting",
    "drop_finished_month",
    "duty_holders",
    "enter_duty",
    "finished_months",
    "give_up_duty",
    "give_up_shard",
    "give_up_share",
    "account_tree",
    "drop_account",
    "drop_submitter",
    "lock_accounts",
    "move_account",
    "put_account",
    "put_membership_by_name",
    "put_submitter",
    "rename_account",
    "rename_limits",
    "rename_submitter",
    "reset_usage",
    "insert_account",
    "insert_app",
    "insert_app_version",
    "insert_app_version_files",
    "insert_batch",
    "insert_copies",
    "insert_files",
    "forecast_app",
    "insert_forecast",
    "insert_forecast_scores",
    "insert_host",
    "open_quotas",
    "insert_outage",
    "insert_schema_version",
    "insert_setting_change",
    "insert_submitter",
    "insert_volunteer",
    "is_fresh",
    "join_workers",
    "last_app_change",
    "drops_of_broken_indexes",
    "limit_build_wait",
    "limit_lock_wait",
    "list_accounts",
    "list_app_versions",
    "list_apps",
    "list_plan_classes",
    "list_setting_changes",
    "list_settings",
    "list_submitters",
    "lock_duty",
    "lock_history",
    "lock_migrations",
    "lock_setting",
    "lock_submitter",
    "submitter_limits",
    "mark_jobs",
    "note_duty",
    "note_outage",
    "note_report",
    "oldest_transaction",
    "open_outages",
    "release_claim",
    "report_of_duty",
    "schema_version",
    "session_pid",
    "shard_holders",
    "submitter_by_name",
    "submitter_name",
    "take_job_class_ids",
    "insert_job_template",
    "take_job_ids",
    "try_claim",
    "try_duty_lock",
    "try_lock_shard",
    "try_share",
    "update_account_shares",
    "update_app",
    "update_app_version",
    "update_submitter_shares",
    "upsert_app_forecast",
    "upsert_plan_class",
    "project_pause",
    "upsert_setting",
    "write_sample",
    "add_percentile_table",
    "attach_percentile_table",
    "broken_generations",
    "insert_cut_points",
    "insert_generation",
    "list_statistics_runs",
    "old_generations",
    "percentiles_of_host",
    "remove_generation",
    "remove_old_runs",
    "switch_generation",
}

OTHER_BATCHES = """
    INSERT INTO batch (
        submitter_id, account_id, app_id, qos, state, jobs_total, created_at, order_tier, order_key, logical_start_at,
        logical_end_at, batch_flop, ended_at
    )
    SELECT 1, 1, 1, 'throughput', 'complete', 10, number, 0, number, 0, 0, 1, number
    FROM generate_series(1, 2000) AS number;
    INSERT INTO job_class (
        batch_id, fpops_est_flop, fpops_bound_flop, memory_bytes, disk_bytes, delay_bound_s, ncpus, quorum, max_errors,
        max_instances, validator
    )
    SELECT batch_id, 1, 1, 0, 0, 1, 1, 1, 1, 1, 'accept' FROM batch WHERE jobs_total = 10;
    INSERT INTO job (batch_id, job_class_id)
    SELECT batch_id, job_class_id FROM job_class CROSS JOIN generate_series(1, 10) WHERE validator = 'accept';
"""
NO_PLAN = {"bulk_session", "by_key"}  # change the session

Nodes = list[dict[str, Any]]
Plans = dict[tuple[str, str], Nodes]
SITUATIONS = ("full", "empty")


@pytest.fixture(scope="module")
def plans() -> Plans:
    """Return the plan of every query, made once in a full and once in an empty database."""
    return asyncio.run(_all_plans())


async def _all_plans() -> Plans:
    made: Plans = {}
    for situation in SITUATIONS:
        async with database() as dsn:
            if situation == "full":
                await fill(dsn)
            connection = await asyncpg.connect(dsn)
            await connection.execute(load("add_finished_month"), month_of(NOW), *month_bounds(month_of(NOW)))
            for step in ("add_percentile_table", "attach_percentile_table"):
                await connection.execute(load(step), 1)
            await connection.close()
            connection = await asyncpg.connect(dsn, server_settings=SESSION)
            for name in sorted(set(queries()) - NO_PLAN):
                made[situation, name] = list(walk(await plan_of(connection, name)))
            await connection.close()
    return made


SIGNED_IN = """
    INSERT INTO person (name, role, password_hash, password_salt, scrypt_n, scrypt_r, scrypt_p, created_at)
    SELECT 'person ' || id, 'viewer', '', '', 2, 8, 1, 0 FROM generate_series(1, 500) AS id;
    INSERT INTO web_session (session_hash, person_id, volunteer_id, created_at, seen_at, expires_at)
    SELECT sha256(id::text::bytea), CASE WHEN id <= 2500 THEN id % 500 + 1 END,
        CASE WHEN id > 2500 THEN id % 20 + 1 END, id, id, id
    FROM generate_series(1, 5000) AS id;
    INSERT INTO api_token (token_hash, name, person_id, rights, created_at)
    SELECT sha256(id::text::bytea), 'token', id % 500 + 1, '{read}', 0 FROM generate_series(1, 2000) AS id;
    INSERT INTO submission_key (owner, key, said, batch_id, created_at)
    SELECT 'person ' || id % 50, 'key ' || id, '', 1, id FROM generate_series(1, 5000) AS id;
    INSERT INTO trickle (instance_id, sent_at, said, received_at, variety, text)
    SELECT id % 500, id, '', id, '', '' FROM generate_series(1, 5000) AS id;
    INSERT INTO known_network (who, network, at) SELECT 'who ' || id, 'network', id FROM generate_series(1, 2000) AS id;
    INSERT INTO sign_in_attempt (key, failures, at) SELECT 'key ' || id, 1, id FROM generate_series(1, 2000) AS id;
    INSERT INTO credit (kind, id, total, average, at)
    SELECT kind, id, 1, 1, 0 FROM generate_series(1, 5000) AS id, unnest('{host,volunteer}'::text[]) AS kind;
    INSERT INTO team (name, founder_id, created_at) SELECT 'team ' || id, id, id FROM generate_series(1, 500) AS id;
    INSERT INTO participation (volunteer_id, team_id, joined_at, export_consent_at)
    SELECT id, id % 500 + 1, 0, 0 FROM generate_series(1, 5000) AS id;
    INSERT INTO sample (step_s, at, figures) SELECT 10 * (1 + id % 3), id, '{}' FROM generate_series(1, 5000) AS id;
    INSERT INTO event (key, kind, raised_at, detail)
    SELECT 'batch_done ' || id || ' ' || id, 'batch_done', id, '{}' FROM generate_series(1, 5000) AS id;
    INSERT INTO subscription (person_id, channel, address, kinds, project_wide, interval_s, created_at)
    SELECT id, 'webhook', 'https://example.org', '{batch_done}', true, 0, 0 FROM generate_series(1, 100) AS id;
    INSERT INTO delivery (subscription_id, made_at, status, next_at)
    SELECT id % 100 + 1, id, CASE WHEN id % 100 = 0 THEN 'waiting' ELSE 'sent' END, id
    FROM generate_series(1, 5000) AS id;
    INSERT INTO notification (subscription_id, event_id, delivery_id)
    SELECT id % 100 + 1, id, CASE WHEN id % 100 > 0 THEN id END FROM generate_series(1, 5000) AS id;
    INSERT INTO act (acted_at, who, what)
    SELECT id, 'person ' || id % 2, 'abort_batch' FROM generate_series(1, 5000) AS id;
"""


async def fill(dsn: str) -> None:
    """20,000 jobs, some of them sent, reported and marked, among 2,000 other batches; statistics gathered."""
    store = await open_store(dsn, min_size=1, max_size=2)
    batch = await a_submitted_batch(store, jobs=20_000)
    await send_some(store, batch)
    await store.close()
    connection = await asyncpg.connect(dsn)
    await connection.execute(OTHER_BATCHES)
    await connection.execute(SIGNED_IN)
    await connection.execute("ANALYZE")
    await connection.close()


async def send_some(store: PostgresStore, batch: Batch) -> None:
    version, waiting = await the_version(store), await waiting_of(store, batch.batch_id)
    for start in range(0, 1000, 50):
        host = await a_registered_host(store)
        sent = [an_assignment(one, host, version) for one in waiting[start : start + 50]]
        await store.ledger.write(RequestWrites(host.host, assignments=tuple(sent)))
        reports = tuple(a_report(assignment) for assignment in sent[:25])
        await store.ledger.write(RequestWrites(host.host, reports=reports))


def test_every_query_is_in_one_of_the_tables() -> None:
    known = [*BY_KEY, *READS_ALL, *SMALL, *NO_PLAN]

    assert sorted(known) == sorted(queries())


def scanned(nodes: Nodes) -> set[str]:
    return {node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan"} & LARGE


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("name", sorted(BY_KEY))
def test_a_query_goes_by_key(plans: Plans, name: str, situation: str) -> None:
    nodes = plans[situation, name]

    assert scanned(nodes) == set()
    assert BY_KEY[name] <= {node["Index Name"] for node in nodes if "Index Name" in node}


@pytest.mark.parametrize("name", sorted(SMALL))
def test_a_query_that_is_not_pinned_looks_at_no_large_table(plans: Plans, name: str) -> None:
    for situation in SITUATIONS:
        looked_at = {
            node["Relation Name"]
            for node in plans[situation, name]
            if node["Node Type"].endswith("Scan") and "Relation Name" in node
        }
        assert looked_at & LARGE == set()


async def test_marks_that_are_dead_do_not_slow_the_look_for_jobs(dsn: str) -> None:
    """A query after 50,000 settled jobs, before any vacuum, reads little more than the jobs it finds."""
    store = await open_store(dsn, min_size=1, max_size=2)
    await a_submitted_batch(store, jobs=2000)
    await store.close()
    connection = await asyncpg.connect(dsn, server_settings=SESSION)
    await connection.execute("ALTER TABLE job_todo SET (autovacuum_enabled = false)")
    await connection.execute(
        "INSERT INTO job_todo SELECT id, nextval('job_todo_serial') FROM generate_series(1000001, 1050000) AS id"
    )
    await connection.execute("DELETE FROM job_todo")
    await connection.execute("INSERT INTO job_todo SELECT job_id, nextval('job_todo_serial') FROM job")

    await connection.fetch(
        load("unsettled_jobs"), 100, 0.0, 2, 1, True
    )  # the first query marks the dead rows in the index
    values = {"$1": "100", "$2": "0.0", "$3": "2", "$4": "1", "$5": "true"}
    query = load("unsettled_jobs")
    for name, value in values.items():
        query = query.replace(name, value)
    plan = (await explained(connection, query))["Plan"]
    await connection.close()

    assert plan["Actual Rows"] == 100
    assert blocks(plan) < 2000
    assert {node["Relation Name"]: node["Actual Rows"] for node in walk(plan) if node.get("Alias") == "job_todo"} == {
        "job_todo": 100
    }


async def test_a_search_for_batches_reads_one_stretch(dsn: str) -> None:
    store = await open_store(dsn, min_size=1, max_size=2)
    await a_submitted_batch(store, jobs=1)
    await store.close()
    connection = await asyncpg.connect(dsn, server_settings=SESSION)
    await connection.execute(OTHER_BATCHES)
    await connection.execute("ANALYZE batch")
    values = ["1500", "true", "50", *["NULL"] * 6, "'no such name'", "1401", "false"]
    query = load("batches_by_id")
    for number in range(len(values), 0, -1):
        query = query.replace(f"${number}", values[number - 1])
    plan = (await explained(connection, query))["Plan"]
    await connection.close()

    looked_at = [node.get("Rows Removed by Filter", 0) for node in walk(plan)]
    assert sum(looked_at) == 99
    assert blocks(plan) < 50


async def test_a_list_reads_the_batches_sent_first_once(dsn: str) -> None:
    """Not once per active batch, which took seconds."""
    store = await open_store(dsn, min_size=1, max_size=2)
    await a_submitted_batch(store, jobs=1)
    await store.close()
    connection = await asyncpg.connect(dsn, server_settings=SESSION)
    await connection.execute(OTHER_BATCHES)
    await connection.execute("UPDATE batch SET state = 'active', ended_at = NULL")
    await connection.execute("INSERT INTO batch_count (batch_id, stripe, unsent) SELECT batch_id, 1, 1 FROM batch")
    await connection.execute("ANALYZE batch, batch_count")
    await connection.execute(f"PREPARE sorted AS {load('active_batches_sorted')}")
    start, first = "'order', 1, '-Infinity', '-Infinity', 0, 50", f"ARRAY{[*range(1000, 0, -1)]}"
    rest = "NULL, NULL, NULL, NULL, NULL, '', NULL, false, NULL, false, 60, false, '{}', '{}', '{}'"
    plan = (await explained(connection, f"EXECUTE sorted ({start}, {rest}, {first}, 600)"))["Plan"]
    await connection.close()

    assert plan["Actual Rows"] == 50
    assert {node["Actual Loops"] for node in walk(plan) if node["Node Type"] == "ProjectSet"} == {1}
    assert not [node for node in walk(plan) if node["Node Type"] == "Function Scan"]


async def test_abort_reads_only_its_own_instances(dsn: str) -> None:
    store = await open_store(dsn, min_size=1, max_size=2)
    await a_submitted_batch(store, jobs=20_000)
    mine = await a_submitted_batch(store, jobs=10)
    await store.close()
    connection = await asyncpg.connect(dsn, server_settings=SESSION)
    await connection.execute("ANALYZE instance")

    cancel = load("cancel_unsent_of_batch").replace("$1", str(mine.batch_id)).replace("$2", "1000")
    plan = (await explained(connection, cancel))["Plan"]
    await connection.close()

    assert plan["Actual Rows"] == 10
    assert blocks(plan) < 300


async def test_no_index_stands_in_the_way_of_changing_counters(dsn: str) -> None:
    """An update is HOT, cheap in time and log, only if no indexed column changes."""
    connection = await asyncpg.connect(dsn)
    rows = await connection.fetch(
        "SELECT DISTINCT attname FROM pg_depend JOIN pg_index ON objid = indexrelid AND refobjid = indrelid "
        "JOIN pg_attribute ON attrelid = indrelid AND attnum = refobjsubid "
        "WHERE classid = 'pg_class'::regclass AND indrelid = 'batch_count'::regclass "
        "UNION SELECT attname FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY(indkey) "
        "WHERE indrelid = 'batch_count'::regclass"
    )
    await connection.close()

    assert {row["attname"] for row in rows} == {"batch_id", "stripe"}
