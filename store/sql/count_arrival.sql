-- Purpose: count one more new host of a day.
-- Arguments: $1 day, $2 who brings it, $3 how many it may bring in a day.
-- Result: hosts, this one included; no row where it has brought them all.
INSERT INTO host_arrival (day, who, hosts)
VALUES ($1, $2, 1)
ON CONFLICT (day, who) DO UPDATE SET hosts = host_arrival.hosts + 1
WHERE host_arrival.hosts < $3
RETURNING hosts;
