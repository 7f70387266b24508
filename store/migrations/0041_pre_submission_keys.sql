-- What submissions are known by when they are sent again.
CREATE TABLE submission_key (
    owner       text NOT NULL,
    key         text NOT NULL,
    said        bytea NOT NULL,
    batch_id    bigint NOT NULL,
    answer      jsonb,
    created_at  double precision NOT NULL,
    PRIMARY KEY (owner, key)
);
CREATE INDEX submission_key_by_time ON submission_key (created_at);
