-- Purpose: submitters with shares of 1 to 9, in the accounts one after the other.
-- Arguments: $1 how many, $2 account_ids, $3 now.
-- Result: none.
INSERT INTO submitter (name, account_id, shares, created_at)
SELECT 's' || number, ($2::int[])[1 + number % cardinality($2::int[])], 1 + number * 7 % 9, $3::double precision
FROM generate_series(1, $1::int) AS number;
