-- Purpose: how the forecasts of a batch went, for a chart.
-- Arguments: $1 batch_id, $2 into how many spans of equal length their time is divided.
-- Result: the first forecast of each span and the last of all, in order of time.
SELECT DISTINCT ON (spanned.span)
    spanned.made_at, spanned.q50_at, spanned.q90_at, spanned.method,
    (spanned.jobs_validated + spanned.jobs_failed)::double precision / greatest(1, spanned.jobs_total) AS over_fraction
FROM (
    SELECT
        forecast.*,
        CASE WHEN ends.last_at > ends.first_at THEN floor(
            (forecast.made_at - ends.first_at) * $2::int / (ends.last_at - ends.first_at)
        ) ELSE 0 END AS span
    FROM forecast
    CROSS JOIN (SELECT min(made_at) AS first_at, max(made_at) AS last_at FROM forecast WHERE batch_id = $1) AS ends
    WHERE forecast.batch_id = $1
) AS spanned
ORDER BY spanned.span, spanned.made_at;
