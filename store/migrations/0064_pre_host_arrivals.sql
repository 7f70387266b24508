-- How many new hosts volunteers and addresses brought, by day.
CREATE TABLE host_arrival (
    day    int NOT NULL,                                -- since 1970-01-01, UTC
    who    text NOT NULL,                               -- "volunteer 7", "address 192.0.2.7"
    hosts  int NOT NULL,
    PRIMARY KEY (day, who)
);
