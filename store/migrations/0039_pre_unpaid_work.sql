-- Whether a batch's work is charged nothing, and the processor equivalents of one of its jobs; the next ordering says both.
ALTER TABLE batch ADD COLUMN unpaid boolean NOT NULL DEFAULT false;
ALTER TABLE batch ADD COLUMN job_pe double precision NOT NULL DEFAULT 1;

CREATE OR REPLACE VIEW batch_with_counts AS
SELECT
    batch.batch_id, batch.submitter_id, batch.account_id, batch.app_id, batch.name, batch.qos, batch.state,
    batch.jobs_total, batch.created_at, batch.order_tier, batch.order_key, batch.logical_start_at, batch.logical_end_at,
    batch.charged_s, batch.batch_flop, batch.deadline_at, batch.user_priority, batch.completion_at,
    batch.completion_q50_at, batch.completion_q90_at, batch.median_turnaround_s, batch.ended_at, total.*,
    batch.queue, batch.level, batch.hold, batch.sent_most, batch.unpaid, batch.job_pe
FROM batch
CROSS JOIN LATERAL (
    SELECT
        coalesce(sum(jobs_validated), 0)::bigint AS jobs_validated,
        coalesce(sum(jobs_failed), 0)::bigint AS jobs_failed,
        coalesce(sum(unsent), 0)::bigint AS unsent,
        coalesce(sum(in_progress), 0)::bigint AS in_progress,
        coalesce(sum(retries), 0)::bigint AS retries,
        coalesce(sum(sent), 0)::bigint AS sent,
        coalesce(sum(reported), 0)::bigint AS reported,
        coalesce(sum(deadlines_missed), 0)::bigint AS deadlines_missed,
        max(last_first_dispatch_at) AS last_first_dispatch_at
    FROM batch_count
    WHERE batch_count.batch_id = batch.batch_id
) AS total;

-- What the instances under way of a batch are charged in service units per PE-hour: what was sent for one price comes back for it.
ALTER TABLE batch_order ADD COLUMN rate double precision NOT NULL DEFAULT 1;
