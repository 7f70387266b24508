-- Purpose: an account signed in from this network.
-- Arguments: $1 who, $2 network, $3 at.
-- Result: none.
INSERT INTO known_network (who, network, at) VALUES ($1, $2, $3)
ON CONFLICT (who, network) DO UPDATE SET at = excluded.at;
