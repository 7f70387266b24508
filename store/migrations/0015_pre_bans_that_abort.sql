-- Whether a ban also ends the jobs in progress: hosts are asked to drop them. Nodes that do not know it leave the jobs alone.
ALTER TABLE restriction ADD COLUMN abort boolean NOT NULL DEFAULT false;
