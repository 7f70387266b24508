-- Purpose: generations older than the previous one; of those with percentiles, the present and the previous stay.
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
