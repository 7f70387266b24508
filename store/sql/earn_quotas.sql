-- Purpose: add what results earned to the quotas of their hosts' accounts and networks. Rows that stay as they are, at a
--   bound, are not locked: the quota of a large account is at its most, and its results come in all the time.
-- Arguments: $1 host_ids, $2 what each earned (arrays), $3 the least and $4 the most that may have been added.
-- Result: none.
UPDATE shared_quota SET earned = least($4::int, greatest($3::int, shared_quota.earned + locked.added))
FROM (
    SELECT quota.name, change.added
    FROM (
        SELECT named.name, sum(result.added) AS added
        FROM unnest($1::int[], $2::int[]) AS result (host_id, added)
        JOIN host ON host.host_id = result.host_id
        CROSS JOIN LATERAL (
            VALUES ('volunteer ' || host.volunteer_id), ('address ' || nullif(host.network, ''))
        ) AS named (name)
        WHERE named.name IS NOT NULL
        GROUP BY named.name
    ) AS change
    JOIN shared_quota AS quota ON quota.name = change.name
    WHERE least($4::int, greatest($3::int, quota.earned + change.added)) <> quota.earned
    ORDER BY quota.name
    FOR UPDATE OF quota
) AS locked
WHERE shared_quota.name = locked.name;
