-- Nodes that do not know the column leave the jobs of banned hosts alone.
ALTER TABLE restriction ADD COLUMN abort boolean NOT NULL DEFAULT false;  -- a ban that also ends the jobs in progress
