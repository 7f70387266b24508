-- Purpose: move every id sequence forward, so that no id given out after a backup is given out again.
-- Arguments: $1 ids of bigint sequences begin behind this one, $2 step of bigint sequences, $3 step of int sequences.
-- Result: name, next (the last id that counts as used); by name. An error if an int sequence has no room left.
SELECT
    sequencename AS name,
    setval(
        format('%I.%I', schemaname, sequencename)::regclass,
        CASE data_type::text
            WHEN 'bigint' THEN greatest(coalesce(last_value, start_value), $1::bigint) + $2::bigint
            ELSE coalesce(last_value, start_value) + $3::bigint
        END
    ) AS next
FROM pg_sequences
WHERE schemaname = current_schema()
ORDER BY sequencename;
