-- Purpose: what many jobs of a batch have in common.
-- Arguments: $1 batch_id, $2 command_line, $3 inputs (JSON or null).
-- Result: template_id.
INSERT INTO job_template (batch_id, command_line, inputs) VALUES ($1, $2, $3) RETURNING template_id;
