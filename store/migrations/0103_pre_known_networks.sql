-- Networks from which an account has signed in: failures from elsewhere do not keep it out there.
CREATE TABLE known_network (
    who      text NOT NULL,                             -- "person ada", "volunteer ada@example.org"
    network  text NOT NULL,
    at       double precision NOT NULL,                 -- the last time
    PRIMARY KEY (who, network)
);
CREATE INDEX known_network_by_time ON known_network (at);
