-- Purpose: what somebody did.
-- Arguments: $1 acted_at, $2 who, $3 what, $4 target, $5 detail (JSON), $6 address.
-- Result: none.
INSERT INTO act (acted_at, who, what, target, detail, address) VALUES ($1, $2, $3, $4, $5::jsonb, $6);
