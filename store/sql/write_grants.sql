-- Purpose: what is used and reserved of grants, in the periods they are in.
-- Arguments: $1 account_ids, $2 period_start_at, $3 used_su, $4 reserved_su (arrays).
-- Result: none.
UPDATE account_grant SET
    period_start_at = charged.period_start_at, used_su = charged.used_su, reserved_su = charged.reserved_su
FROM unnest($1::int[], $2::double precision[], $3::double precision[], $4::double precision[]) AS charged (
    account_id, period_start_at, used_su, reserved_su
)
WHERE account_grant.account_id = charged.account_id;
