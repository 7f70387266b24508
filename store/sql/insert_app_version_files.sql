-- Purpose: the files of an app version, in order.
-- Arguments: $1 app_version_id, $2 file_ids, $3 main_program, $4 open_name, $5 copy_file, $6 executable (arrays, in order).
-- Result: none.
INSERT INTO app_version_file (app_version_id, position, file_id, main_program, open_name, copy_file, executable)
SELECT $1::int, new.position - 1, new.file_id, new.main_program, new.open_name, new.copy_file, new.executable
FROM unnest($2::bigint[], $3::boolean[], $4::text[], $5::boolean[], $6::boolean[]) WITH ORDINALITY
    AS new (file_id, main_program, open_name, copy_file, executable, position)
ORDER BY new.position;
