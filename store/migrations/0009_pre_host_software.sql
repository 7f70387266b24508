-- Software that jobs may need, as NAME/VERSION separated by blanks: docker, podman, virtualbox.
ALTER TABLE host ADD COLUMN software text NOT NULL DEFAULT '';
