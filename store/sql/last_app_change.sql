-- Purpose: the last change of app versions, their files and plan classes.
-- Arguments: none.
-- Result: last_change; no row where somebody has emptied the table.
SELECT last_change FROM app_changes;
