-- Purpose: before a forecast is kept, remove one of the same instant, and of those that changed nothing all but the first
--   of each part of time, from a while ago.
-- Arguments: $1 batch_id, $2 made_at of the new one, $3 from and $4 to, the while; $5 seconds of a part.
-- Result: none.
DELETE FROM forecast
WHERE batch_id = $1
    AND (
        made_at = $2
        OR (
            made_at >= $3::double precision AND made_at < $4::double precision
            AND change = 'held' AND checkpoint_fraction IS NULL
            AND EXISTS (
                SELECT
                FROM forecast AS earlier
                WHERE earlier.batch_id = $1
                    AND earlier.made_at >= floor(forecast.made_at / $5::double precision) * $5::double precision
                    AND earlier.made_at < forecast.made_at
            )
        )
    );
