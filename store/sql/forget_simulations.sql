-- Purpose: forget simulations but for the latest.
-- Arguments: $1 how many are kept.
-- Result: none.
DELETE FROM simulation
WHERE simulation_id <= (SELECT simulation_id FROM simulation ORDER BY simulation_id DESC LIMIT 1 OFFSET $1);
