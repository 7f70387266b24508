-- The index of waiting batches that knew no holds; the ordering's own has taken its place.

DROP INDEX batch_waiting;
