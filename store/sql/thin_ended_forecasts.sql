-- Purpose: of an ended batch's forecasts that changed nothing keep the checkpoints and the first of each part of time.
-- Arguments: $1 batch_id, $2 seconds of a part.
-- Result: none.
DELETE FROM forecast
WHERE batch_id = $1 AND change = 'held' AND checkpoint_fraction IS NULL
    AND EXISTS (
        SELECT
        FROM forecast AS earlier
        WHERE earlier.batch_id = $1
            AND earlier.made_at >= floor(forecast.made_at / $2::double precision) * $2::double precision
            AND earlier.made_at < forecast.made_at
    );
