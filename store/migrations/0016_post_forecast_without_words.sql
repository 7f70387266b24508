-- Nodes compute whether a deadline is at risk when they show it.
ALTER TABLE forecast DROP COLUMN at_risk;
