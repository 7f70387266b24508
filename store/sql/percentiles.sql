-- name: add_percentile_table
-- Purpose: create the table for a generation's percentiles, not yet visible to queries.
-- Arguments: $1 generation.
-- Result: its name.
SELECT add_percentile_table($1) AS name;


-- name: attach_percentile_table
-- Purpose: index a generation's percentiles and attach them to host_percentile.
-- Arguments: $1 generation.
-- Result: one row, to be ignored.
SELECT attach_percentile_table($1);


-- name: broken_generations
-- Purpose: return generations left by interrupted runs. The caller holds the run lock, so no run is in progress.
-- Arguments: none.
-- Result: generation.
SELECT generation FROM percentile_generation WHERE NOT complete ORDER BY generation;


-- name: insert_cut_points
-- Purpose: write the cut points of one (app, processor type) of a generation.
-- Arguments: $1 generation, $2 app_id, $3 processor_type, $4 n, $5 turnaround, $6 consecutive_valid, $7 score_mean,
--   $8 tight_n, $9 tight_mean, $10 tight_sd, $11 retry_turnaround_s, $12 median_safe_runtime_s.
-- Result: none.
INSERT INTO cut_points (
    generation, app_id, processor_type, n, turnaround, consecutive_valid, score_mean, tight_n, tight_mean, tight_sd,
    retry_turnaround_s, median_safe_runtime_s
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);


-- name: insert_generation
-- Purpose: begin a generation of the host statistics.
-- Arguments: $1 computed_at, $2 whether it will have the percentiles of every row.
-- Result: generation.
INSERT INTO percentile_generation (computed_at, with_percentiles) VALUES ($1, $2) RETURNING generation;


-- name: list_statistics_runs
-- Purpose: return published runs of the host statistics, newest first.
-- Arguments: $1 limit.
-- Result: rows of host_statistics_run.
SELECT generation, is_full, started_at, seconds, parts
FROM host_statistics_run
ORDER BY generation DESC
LIMIT $1;


-- name: old_generations
-- Purpose: return generations older than the previous one; of those with percentiles, the current and the previous
--   are kept.
-- Arguments: none.
-- Result: generation.
SELECT old.generation
FROM percentile_generation AS old
WHERE
    old.complete
    AND (
        SELECT count(*) FROM percentile_generation AS newer
        WHERE newer.complete AND newer.generation > old.generation
    ) > 1
    AND (
        NOT old.with_percentiles
        OR (
            SELECT count(*) FROM percentile_generation AS newer
            WHERE newer.complete AND newer.with_percentiles AND newer.generation > old.generation
        ) > 1
    )
ORDER BY old.generation;


-- name: percentiles_of_host
-- Purpose: return a host's percentiles in the last full run of the host statistics.
-- Arguments: $1 host_id.
-- Result: host_id, app_version_id, p, x, y.
SELECT host_id, app_version_id, p, x, y
FROM host_percentile
WHERE
    host_id = $1
    AND generation = (
        SELECT generation FROM percentile_generation
        WHERE complete AND with_percentiles ORDER BY generation DESC LIMIT 1
    )
ORDER BY app_version_id;


-- name: remove_generation
-- Purpose: remove a generation and its data; gives up if its percentiles are read for too long.
-- Arguments: $1 generation.
-- Result: one row, to be ignored.
SELECT remove_generation($1);


-- name: remove_old_runs
-- Purpose: delete all but the newest runs of the host statistics.
-- Arguments: $1 how many stay.
-- Result: none.
DELETE FROM host_statistics_run
WHERE generation <= (
    SELECT generation FROM host_statistics_run ORDER BY generation DESC OFFSET $1 LIMIT 1
);


-- name: switch_generation
-- Purpose: make a complete generation the current one, and record its run; does nothing if another run removed it.
-- Arguments: $1 generation, $2 full, $3 started_at, $4 seconds, $5 parts (JSON).
-- Result: the generation, if it is now the current one.
WITH written AS (
    UPDATE percentile_generation SET complete = true WHERE generation = $1 AND NOT complete RETURNING generation
),
noted AS (
    INSERT INTO host_statistics_run (generation, is_full, started_at, seconds, parts)
    SELECT generation, $2::boolean, $3::double precision, $4::double precision, $5::jsonb FROM written
)
INSERT INTO percentile_pointer (generation)
SELECT generation FROM written
ON CONFLICT (only_row) DO UPDATE SET generation = excluded.generation
RETURNING generation;

-- name: add_statistics_rows
-- Purpose: insert empty statistics for new pairs of host and app version.
-- Arguments: $1 host_ids, $2 app_version_ids (arrays, keys distinct).
-- Result: none.
INSERT INTO host_app_version (host_id, app_version_id)
SELECT * FROM unnest($1::int[], $2::int[]) AS new (host_id, app_version_id) ORDER BY new.host_id, new.app_version_id
ON CONFLICT (host_id, app_version_id) DO NOTHING;


-- name: app_facts
-- Purpose: return the size of an app's jobs, and the validation delay of its results: of its 50 newest batches, from
--   at most 100 jobs of each.
-- Arguments: $1 app_id.
-- Result: typical_flop, validation_lag_s; null where there are none.
WITH recent AS (
    SELECT batch_id
    FROM batch
    WHERE app_id = $1
    ORDER BY batch_id DESC
    LIMIT 50
)
SELECT
    (
        SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY job_class.fpops_est_flop)
        FROM recent
        JOIN job_class USING (batch_id)
    ) AS typical_flop,
    (
        SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY greatest(0, job.ended_at - instance.reported_at))
        FROM recent
        CROSS JOIN LATERAL (
            SELECT first.canonical_instance_id, first.ended_at
            FROM job AS first
            WHERE first.batch_id = recent.batch_id
            ORDER BY first.job_id
            LIMIT 100
        ) AS job
        JOIN instance ON instance.instance_id = job.canonical_instance_id
    ) AS validation_lag_s;


-- name: change_statistics
-- Purpose: add to the statistics of hosts' app versions, as domain/havs.py does in memory: sums are first decayed to
--   the later instant, with a half-life of 14 days (1209600 s). Rows are changed in key order.
-- Arguments: $1 host_ids, $2 app_version_ids, $3 judged (whether there were events), $4 day, $5 sent, $6 at,
--   $7 valid_reset, $8 valid_added, $9 quota_factor, $10 quota_added, $11 to $13 speed, $14 to $16 tight,
--   $17 to $19 relaxed (n, sum, sum_sq), $20 to $22 log (n, sum, sum_sq), $23 n_valid, $24 n_error, $25 n_timeout,
--   $26 tight_missed_n, $27 quota_least, $28 quota_most (arrays, keys distinct), $29 quota_start.
-- Result: host_id and app_version_id of the rows that were there.
UPDATE host_app_version SET
    consecutive_valid
        = CASE WHEN delta.valid_reset THEN 0 ELSE host_app_version.consecutive_valid END + delta.valid_added,
    quota_per_day = CASE
        WHEN delta.judged THEN trunc(least(delta.quota_most, greatest(
            delta.quota_least,
            coalesce(nullif(host_app_version.quota_per_day, 0), $29::int) * delta.quota_factor + delta.quota_added
        )))::int
        ELSE host_app_version.quota_per_day
    END,
    day = greatest(host_app_version.day, delta.day),
    sent_today = CASE
        WHEN delta.day > host_app_version.day THEN delta.sent
        ELSE host_app_version.sent_today + delta.sent
    END,
    stats_at = greatest(host_app_version.stats_at, delta.at),
    clean_since_at = CASE
        WHEN delta.valid_reset OR (delta.n_valid > 0 AND host_app_version.clean_since_at IS NULL) THEN delta.at
        ELSE host_app_version.clean_since_at
    END,
    (
        speed_n, speed_sum, speed_sum_sq, tight_n, tight_sum, tight_sum_sq, tight_missed_n, relaxed_n, relaxed_sum,
        relaxed_sum_sq
    ) = (
        SELECT
            greatest(0, host_app_version.speed_n * weight + delta.speed_n),
            host_app_version.speed_sum * weight + delta.speed_sum,
            host_app_version.speed_sum_sq * weight + delta.speed_sum_sq,
            greatest(0, host_app_version.tight_n * weight + delta.tight_n),
            host_app_version.tight_sum * weight + delta.tight_sum,
            host_app_version.tight_sum_sq * weight + delta.tight_sum_sq,
            greatest(0, host_app_version.tight_missed_n * weight + delta.tight_missed_n),
            greatest(0, host_app_version.relaxed_n * weight + delta.relaxed_n),
            host_app_version.relaxed_sum * weight + delta.relaxed_sum,
            host_app_version.relaxed_sum_sq * weight + delta.relaxed_sum_sq
        FROM (
            -- 200 half-lives leave nothing; more would underflow
            VALUES (
                power(2::double precision, -least(200, greatest(0, delta.at - host_app_version.stats_at) / 1209600))
            )
        ) AS decay (weight)
    ),
    log_n = host_app_version.log_n + delta.log_n,
    log_sum = host_app_version.log_sum + delta.log_sum,
    log_sum_sq = host_app_version.log_sum_sq + delta.log_sum_sq,
    n_valid = host_app_version.n_valid + delta.n_valid,
    n_error = host_app_version.n_error + delta.n_error,
    n_timeout = greatest(0, host_app_version.n_timeout + delta.n_timeout)
FROM (
    SELECT *
    FROM unnest(
        $1::int[], $2::int[], $3::boolean[], $4::int[], $5::int[], $6::double precision[], $7::boolean[], $8::int[],
        $9::double precision[], $10::int[], $11::double precision[], $12::double precision[], $13::double precision[],
        $14::double precision[], $15::double precision[], $16::double precision[], $17::double precision[],
        $18::double precision[], $19::double precision[], $20::bigint[], $21::double precision[],
        $22::double precision[], $23::bigint[], $24::bigint[], $25::bigint[], $26::double precision[], $27::int[],
        $28::int[]
    ) AS delta (
        host_id, app_version_id, judged, day, sent, at, valid_reset, valid_added, quota_factor, quota_added, speed_n,
        speed_sum, speed_sum_sq, tight_n, tight_sum, tight_sum_sq, relaxed_n, relaxed_sum, relaxed_sum_sq, log_n,
        log_sum, log_sum_sq, n_valid, n_error, n_timeout, tight_missed_n, quota_least, quota_most
    )
    ORDER BY delta.host_id, delta.app_version_id
) AS delta
WHERE host_app_version.host_id = delta.host_id
    AND host_app_version.app_version_id + 0 = delta.app_version_id  -- + 0: by the host, never by the version
RETURNING host_app_version.host_id, host_app_version.app_version_id;


-- name: hav_rows
-- Purpose: return the statistics of all hosts with some app versions, for ranking. In table order: a sort would take
--   longer than the ranking, which sorts anyway. Host data are in ranked_hosts: joined here, they would be computed
--   once for each of a host's rows.
-- Arguments: $1 app_version_ids, $2 since when a row had no failure that is forgiven.
-- Result: the fields of store/hav_tables.py ROW_FIELDS, none of them null.
SELECT
    host_id, app_version_id,
    CASE
        WHEN consecutive_valid >= 3 AND clean_since_at <= $2::double precision THEN 1073741824
        ELSE consecutive_valid
    END AS consecutive_valid,
    consecutive_valid = 0 AND (clean_since_at IS NOT NULL OR n_error + n_timeout > 0) AS failed,
    stats_at, relaxed_n, relaxed_sum, tight_n, tight_sum, tight_sum_sq, tight_missed_n, log_n, log_sum, log_sum_sq,
    coalesce(speed_sum / nullif(speed_n, 0), 'NaN') AS s_per_flop
FROM host_app_version
WHERE app_version_id = ANY($1::int[])


-- name: ranked_hosts
-- Purpose: return the host data of a ranking: whether the host is active, and the fraction of time it computes.
-- Arguments: $1 since when an active host has called.
-- Result: the fields of store/hav_tables.py HOST_FIELDS, by host_id.
SELECT
    host_id, last_rpc_at >= $1::double precision AS active,
    greatest(0.01, on_fraction * active_fraction)::real AS cpu_share,
    greatest(0.01, on_fraction * gpu_active_fraction)::real AS gpu_share
FROM host
ORDER BY host_id


-- name: refresh_app_turnaround
-- Purpose: store an app's turnaround per estimated flop: the median over at most 100 jobs of each of its 50 newest
--   batches, if there are 20 valid results. It is the expectation for batches without a median of their own.
-- Arguments: $1 app_id.
-- Result: none.
UPDATE app SET turnaround_s_per_flop = found.median
FROM (
    SELECT
        count(*) AS n,
        percentile_disc(0.5) WITHIN GROUP (
            ORDER BY greatest(1, instance.reported_at - instance.sent_at) / job_class.fpops_est_flop
        ) AS median
    FROM (
        SELECT batch_id
        FROM batch
        WHERE app_id = $1
        ORDER BY batch_id DESC
        LIMIT 50
    ) AS recent
    CROSS JOIN LATERAL (
        SELECT first.job_id, first.job_class_id
        FROM job AS first
        WHERE first.batch_id = recent.batch_id
        ORDER BY first.job_id
        LIMIT 100
    ) AS job
    JOIN instance ON instance.job_id = job.job_id AND instance.state = 'valid'
    JOIN job_class ON job_class.job_class_id = job.job_class_id
) AS found
WHERE app.app_id = $1 AND found.n >= 20 AND found.median IS DISTINCT FROM app.turnaround_s_per_flop;


-- name: refresh_batch_turnarounds
-- Purpose: store the median turnaround of an app's active batches (the 1000 newest), from the instances of at most
--   400 jobs of each. Instances that are outstanding or timed out count as longer than all returned ones, so that a
--   young batch is not rated by its fastest hosts; a batch has none before 20 results are valid and half of the sent
--   ones are back. Changes of less than 5 % are not written. Batches with a locked row are skipped.
-- Arguments: $1 app_id.
-- Result: none.
WITH sampled AS (
    SELECT
        recent.batch_id,
        percentile_disc(0.5) WITHIN GROUP (
            ORDER BY
                CASE WHEN instance.state = 'valid' THEN greatest(1, instance.reported_at - instance.sent_at)
                ELSE 'infinity'::double precision END
        ) AS median
    FROM (
        SELECT batch_id
        FROM batch
        WHERE state = 'active' AND app_id = $1
        ORDER BY batch_id DESC
        LIMIT 1000
    ) AS recent
    CROSS JOIN LATERAL (
        SELECT first.job_id
        FROM job AS first
        WHERE first.batch_id = recent.batch_id
        ORDER BY first.job_id
        LIMIT 400
    ) AS job
    JOIN instance ON instance.job_id = job.job_id AND instance.state IN ('valid', 'in_progress', 'timed_out')
    GROUP BY recent.batch_id
    HAVING count(*) FILTER (WHERE instance.state = 'valid') >= 20
),
locked AS (
    SELECT batch.batch_id, sampled.median
    FROM batch
    JOIN sampled USING (batch_id)
    WHERE sampled.median < 'infinity'
        AND (
            batch.median_turnaround_s IS NULL
            OR abs(batch.median_turnaround_s - sampled.median) >= sampled.median / 20
        )
    ORDER BY batch.batch_id
    FOR NO KEY UPDATE OF batch SKIP LOCKED
)
UPDATE batch SET median_turnaround_s = locked.median FROM locked WHERE batch.batch_id = locked.batch_id;


-- name: sampled_versions
-- Purpose: estimate the number of statistics rows of each app version, from one page in a hundred.
-- Arguments: none.
-- Result: app_version_id, rows.
SELECT app_version_id, count(*) * 100 AS rows
FROM host_app_version TABLESAMPLE SYSTEM (1)
GROUP BY app_version_id
ORDER BY app_version_id;
