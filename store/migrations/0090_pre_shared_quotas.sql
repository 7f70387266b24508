-- The jobs a day that the computers of an account, or at an address, get beyond what their own records cover.
CREATE TABLE shared_quota (
    name    text PRIMARY KEY,                           -- "volunteer 7", "address 192.0.2.7"
    earned  int NOT NULL DEFAULT 0,                     -- what results added to scheduler.shared_quota_start, or took
    day     int NOT NULL,                               -- since 1970-01-01, UTC, of `sent`
    sent    int NOT NULL DEFAULT 0
);
CREATE INDEX shared_quota_by_day ON shared_quota (day);
-- Where a host last drew on them.
ALTER TABLE host ADD COLUMN network text NOT NULL DEFAULT '';
