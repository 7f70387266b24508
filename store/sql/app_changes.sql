-- Purpose: how often app versions, their files and plan classes have changed.
-- Arguments: none.
-- Result: changes.
SELECT changes FROM app_changes;
