-- Purpose: the files of every app version.
-- Arguments: none.
-- Result: files by app version and position.
SELECT
    used.app_version_id, used.main_program, used.open_name, used.copy_file, used.executable,
    file.name, file.nbytes, file.md5, file.signature
FROM app_version_file AS used
JOIN file USING (file_id)
ORDER BY used.app_version_id, used.position;
