-- name: add_event
-- Purpose: raise an event for a single subscription, which is delivered without waiting for its interval.
-- Arguments: $1 subscription_id, $2 key, $3 kind, $4 now.
-- Result: event_id; no row when there is no such subscription.
WITH known AS (
    UPDATE subscription SET delivered_at = 0 WHERE subscription_id = $1 RETURNING subscription_id
),
raised AS (
    INSERT INTO event (key, kind, raised_at, detail)
    SELECT $2, $3, $4, '{}' FROM known
    RETURNING event_id
)
INSERT INTO notification (subscription_id, event_id)
SELECT known.subscription_id, raised.event_id FROM known CROSS JOIN raised
RETURNING event_id;


-- name: app_failures
-- Purpose: return the apps with failed or invalid results since an instant, and the results of the batches concerned.
-- Arguments: $1 since when, $2 number of latest failures to read.
-- Result: app, failures, hosts, batch_ids, submitter_ids, and results reported since the batches were last watched, by app.
WITH recent AS MATERIALIZED (
    SELECT batch_id, host_id
    FROM instance
    WHERE state IN ('failed', 'invalid') AND coalesce(reported_at, timeout_at) >= $1
    ORDER BY coalesce(reported_at, timeout_at) DESC, instance_id DESC
    LIMIT $2
),
of_batch AS (
    SELECT batch_id, count(*) AS failures FROM recent GROUP BY batch_id
),
with_results AS (
    SELECT
        of_batch.batch_id, of_batch.failures,
        (
            SELECT coalesce(sum(batch_count.reported), 0) FROM batch_count WHERE batch_count.batch_id = of_batch.batch_id
        ) - coalesce((SELECT reported FROM batch_watch WHERE batch_watch.batch_id = of_batch.batch_id), 0) AS results
    FROM of_batch
)
SELECT
    app.name AS app, sum(with_results.failures)::bigint AS failures, sum(with_results.results)::bigint AS results,
    array_agg(batch.batch_id ORDER BY batch.batch_id) AS batch_ids,
    array_agg(DISTINCT batch.submitter_id) AS submitter_ids,
    (
        SELECT count(DISTINCT recent.host_id) FROM recent WHERE recent.batch_id = ANY(array_agg(batch.batch_id))
    )::bigint AS hosts
FROM with_results
JOIN batch ON batch.batch_id = with_results.batch_id
JOIN app ON app.app_id = batch.app_id
GROUP BY app.name
ORDER BY app.name;


-- name: bound_notifications
-- Purpose: drop the latest events that wait for a subscription beyond a number, and count them.
-- Arguments: $1 most waiting events of a subscription.
-- Result: none.
WITH excess AS (
    DELETE FROM notification
    USING (
        SELECT subscription_id, event_id, row_number() OVER (PARTITION BY subscription_id ORDER BY event_id) AS place
        FROM notification
        WHERE delivery_id IS NULL
    ) AS waiting
    WHERE notification.subscription_id = waiting.subscription_id
        AND notification.event_id = waiting.event_id
        AND waiting.place > $1
    RETURNING notification.subscription_id
)
UPDATE subscription SET dropped = dropped + counted.n
FROM (SELECT subscription_id, count(*) AS n FROM excess GROUP BY subscription_id) AS counted
WHERE subscription.subscription_id = counted.subscription_id;


-- name: claim_deliveries
-- Purpose: count an attempt at deliveries that are due, before it starts, and plan the next one. Deliveries to a
--   subscription that is paused, or whose owner lost the right to it, wait.
-- Arguments: $1 now, $2 limit, $3 first pause, $4 longest pause (seconds; each pause is four times the previous one),
--   $5 most mails.
-- Result: deliveries.
UPDATE delivery SET
    attempts = attempts + 1, next_at = $1 + least($4::double precision, $3::double precision * power(4, least(attempts, 20)))
FROM (
    SELECT delivery_id
    FROM (
        SELECT
            delivery.delivery_id, delivery.next_at, subscription.channel,
            row_number() OVER (PARTITION BY subscription.channel ORDER BY delivery.next_at, delivery.delivery_id) AS place
        FROM delivery
        JOIN subscription ON subscription.subscription_id = delivery.subscription_id
        JOIN person ON person.person_id = subscription.person_id
        WHERE delivery.status = 'waiting'
            AND delivery.next_at <= $1
            AND NOT subscription.paused
            AND person.active
            AND (NOT subscription.project_wide OR person.role = 'operator')
    ) AS ready
    WHERE channel <> 'email' OR place <= $5
    ORDER BY next_at, delivery_id
    LIMIT $2
) AS due
WHERE delivery.delivery_id = due.delivery_id
RETURNING delivery.*;


-- name: confirm_subscription
-- Purpose: record that the owner of an e-mail address agreed.
-- Arguments: $1 subscription_id, $2 now.
-- Result: subscription_id; no row when there is none.
UPDATE subscription SET confirmed_at = coalesce(confirmed_at, $2) WHERE subscription_id = $1 RETURNING subscription_id;


-- name: delete_subscription
-- Purpose: delete a subscription with its deliveries.
-- Arguments: $1 subscription_id.
-- Result: subscription_id; no row when there is none.
DELETE FROM subscription WHERE subscription_id = $1 RETURNING subscription_id;


-- name: end_attempt_at_delivery
-- Purpose: record the outcome of an attempt. A delivery that ended meanwhile stays as it is.
-- Arguments: $1 delivery_id, $2 status, $3 outcome, $4 now.
-- Result: none.
UPDATE delivery SET status = $2, outcome = $3, ended_at = CASE WHEN $2 = 'waiting' THEN NULL ELSE $4::double precision END
WHERE delivery_id = $1 AND status = 'waiting';


-- name: endangered_batches
-- Purpose: return active batches whose deadline has passed or is earlier than q90 of the forecast, without those whose event exists.
-- Arguments: $1 now, $2 limit.
-- Result: batches with the key of their event, app, submitter and forecast (null: none), by deadline.
SELECT
    CASE WHEN batch.deadline_at <= $1 THEN 'batch_missed ' ELSE 'batch_at_risk ' END
        || batch.batch_id || ' ' || round(batch.deadline_at)::bigint AS key,
    batch.*, app.name AS app, submitter.name AS submitter, latest.q50_at, latest.q90_at
FROM (
    SELECT
        found.batch_id, found.name, found.submitter_id, found.app_id, found.state, found.jobs_total, found.ended_at,
        found.deadline_at,
        (
            SELECT coalesce(sum(jobs_validated), 0)::bigint FROM batch_count WHERE batch_count.batch_id = found.batch_id
        ) AS jobs_validated,
        (
            SELECT coalesce(sum(jobs_failed), 0)::bigint FROM batch_count WHERE batch_count.batch_id = found.batch_id
        ) AS jobs_failed
    FROM batch AS found
    WHERE found.state = 'active' AND found.deadline_at IS NOT NULL
) AS batch
JOIN app ON app.app_id = batch.app_id
JOIN submitter ON submitter.submitter_id = batch.submitter_id
LEFT JOIN latest_forecast AS latest ON latest.batch_id = batch.batch_id
WHERE (batch.deadline_at <= $1 OR (latest.has_evidence AND latest.q90_at > batch.deadline_at))
    AND NOT EXISTS (
        SELECT FROM event
        WHERE event.key = CASE WHEN batch.deadline_at <= $1 THEN 'batch_missed ' ELSE 'batch_at_risk ' END
            || batch.batch_id || ' ' || round(batch.deadline_at)::bigint
    )
ORDER BY batch.deadline_at, batch.batch_id
LIMIT $2;


-- name: ended_batches
-- Purpose: return watched batches that ended lately, without those whose event exists. A retried batch ends again.
-- Arguments: $1 since when, $2 limit.
-- Result: batches with the key of their event, app and submitter, by id.
SELECT
    found.key, batch.batch_id, batch.name, batch.submitter_id, batch.state, batch.jobs_total, batch.jobs_validated,
    batch.jobs_failed, batch.ended_at, batch.deadline_at, app.name AS app, submitter.name AS submitter,
    NULL::double precision AS q50_at, NULL::double precision AS q90_at
FROM (
    SELECT watch.batch_id, 'batch_done ' || watch.batch_id || ' ' || round(ended.ended_at)::bigint AS key
    FROM batch_watch AS watch
    JOIN batch AS ended ON ended.batch_id = watch.batch_id
    WHERE ended.ended_at >= $1
        AND NOT EXISTS (
            SELECT FROM event
            WHERE event.key = 'batch_done ' || watch.batch_id || ' ' || round(ended.ended_at)::bigint
        )
    ORDER BY watch.batch_id
    LIMIT $2
) AS found
JOIN batch_with_counts AS batch ON batch.batch_id = found.batch_id
JOIN app ON app.app_id = batch.app_id
JOIN submitter ON submitter.submitter_id = batch.submitter_id
ORDER BY batch.batch_id;


-- name: events_of_deliveries
-- Purpose: return the events of deliveries.
-- Arguments: $1 delivery_ids.
-- Result: events with delivery_id, by delivery and event.
SELECT notification.delivery_id, event.*
FROM notification
JOIN event ON event.event_id = notification.event_id
WHERE notification.delivery_id = ANY($1::bigint[])
ORDER BY notification.delivery_id, event.event_id;


-- name: forget_events
-- Purpose: delete old events, with their notifications; those of active batches stay, so that they are not raised again.
-- Arguments: $1 before when.
-- Result: none.
DELETE FROM event
WHERE raised_at < $1
    AND NOT EXISTS (SELECT FROM batch WHERE batch.batch_id = event.batch_id AND batch.state = 'active');


-- name: forget_deliveries
-- Purpose: delete old deliveries.
-- Arguments: $1 before when.
-- Result: none.
DELETE FROM delivery WHERE made_at < $1 AND status <> 'waiting';


-- name: forget_unconfirmed
-- Purpose: delete old subscriptions whose address was never confirmed.
-- Arguments: $1 before when.
-- Result: none.
DELETE FROM subscription WHERE confirmed_at IS NULL AND created_at < $1;


-- name: insert_subscription
-- Purpose: add a subscription, unless the person has too many.
-- Arguments: $1 person_id, $2 channel, $3 address, $4 kinds, $5 project_wide, $6 interval_s, $7 now, $8 confirmed_at or null,
--   $9 most subscriptions of a person.
-- Result: subscription_id; no row when the person has too many.
INSERT INTO subscription (person_id, channel, address, kinds, project_wide, interval_s, created_at, confirmed_at)
SELECT $1, $2, $3, $4::text[], $5, $6, $7, $8
WHERE (SELECT count(*) FROM subscription WHERE person_id = $1) < $9
RETURNING subscription_id;


-- name: list_deliveries
-- Purpose: return deliveries, newest first.
-- Arguments: $1 person_id (null: of everyone), $2 delivery_id before which to continue, $3 limit, $4 subscription_id (null: any).
-- Result: deliveries with the channel, the address and the number of events.
SELECT
    latest.*, subscription.channel, subscription.address,
    (SELECT count(*) FROM notification WHERE notification.delivery_id = latest.delivery_id) AS events
FROM (
    SELECT *
    FROM delivery
    WHERE delivery_id < $2
        AND ($4::int IS NULL OR subscription_id = $4)
        AND ($1::int IS NULL OR subscription_id IN (SELECT subscription_id FROM subscription WHERE person_id = $1))
    ORDER BY delivery_id DESC
    LIMIT $3
) AS latest
JOIN subscription ON subscription.subscription_id = latest.subscription_id
ORDER BY latest.delivery_id DESC;


-- name: list_subscriptions
-- Purpose: return subscriptions.
-- Arguments: $1 person_id (null: of everyone), $2 subscription_id after which to continue, $3 limit.
-- Result: subscriptions with the person's name, by id.
SELECT subscription.*, person.name AS person
FROM subscription
JOIN person ON person.person_id = subscription.person_id
WHERE subscription.subscription_id > $2 AND ($1::int IS NULL OR subscription.person_id = $1)
ORDER BY subscription.subscription_id
LIMIT $3;


-- name: make_deliveries
-- Purpose: make a delivery of the waiting events of each subscription whose interval has passed and that has no other delivery.
--   Events of a subscription that is paused, or whose owner lost the right to it, wait.
-- Arguments: $1 now, $2 most events of a delivery.
-- Result: none.
WITH ready AS (
    SELECT subscription.subscription_id, subscription.dropped
    FROM subscription
    JOIN person ON person.person_id = subscription.person_id
    WHERE NOT subscription.paused
        AND person.active
        AND (NOT subscription.project_wide OR person.role = 'operator')
        AND subscription.delivered_at + subscription.interval_s <= $1
        AND EXISTS (
            SELECT FROM notification
            WHERE notification.subscription_id = subscription.subscription_id AND notification.delivery_id IS NULL
        )
        AND NOT EXISTS (
            SELECT FROM delivery
            WHERE delivery.subscription_id = subscription.subscription_id AND delivery.status = 'waiting'
        )
),
made AS (
    INSERT INTO delivery (subscription_id, made_at, next_at, dropped)
    SELECT subscription_id, $1, $1, dropped FROM ready
    RETURNING delivery_id, subscription_id
),
noted AS (
    UPDATE subscription SET delivered_at = $1, dropped = 0
    FROM made
    WHERE subscription.subscription_id = made.subscription_id
)
UPDATE notification SET delivery_id = made.delivery_id
FROM made
WHERE notification.subscription_id = made.subscription_id
    AND notification.event_id IN (
        SELECT waiting.event_id
        FROM notification AS waiting
        WHERE waiting.subscription_id = made.subscription_id AND waiting.delivery_id IS NULL
        ORDER BY waiting.event_id
        LIMIT $2
    );


-- name: raise_events
-- Purpose: raise events that were not raised before, for the subscriptions to them.
-- Arguments: $1 keys, $2 kinds, $3 raised_at, $4 batch_ids or nulls, $5 submitter_ids, $6 details (JSON; arrays).
-- Result: none.
WITH raised AS (
    INSERT INTO event (key, kind, raised_at, batch_id, submitter_ids, detail)
    SELECT key, kind, raised_at, batch_id, submitter_ids::jsonb, detail::jsonb
    FROM unnest($1::text[], $2::text[], $3::double precision[], $4::bigint[], $5::text[], $6::text[])
        AS new (key, kind, raised_at, batch_id, submitter_ids, detail)
    ON CONFLICT (key) DO NOTHING
    RETURNING event_id, kind, submitter_ids
)
INSERT INTO notification (subscription_id, event_id)
SELECT subscription.subscription_id, raised.event_id
FROM raised
JOIN subscription ON raised.kind = ANY(subscription.kinds)
JOIN person ON person.person_id = subscription.person_id
WHERE subscription.confirmed_at IS NOT NULL
    AND NOT subscription.paused
    AND person.active
    AND CASE
        WHEN subscription.project_wide THEN person.role = 'operator'
        ELSE raised.submitter_ids @> to_jsonb(person.submitter_id)
    END;


-- name: set_subscription
-- Purpose: change a subscription; null keeps a value.
-- Arguments: $1 subscription_id, $2 kinds, $3 interval_s, $4 paused.
-- Result: subscription_id; no row when there is none.
UPDATE subscription SET
    kinds = coalesce($2::text[], kinds), interval_s = coalesce($3, interval_s), paused = coalesce($4, paused)
WHERE subscription_id = $1
RETURNING subscription_id;


-- name: rotate_subscription
-- Purpose: give a subscription a new secret.
-- Arguments: $1 subscription_id, $2 now.
-- Result: subscription_id; no row when there is none.
UPDATE subscription SET secret_serial = secret_serial + 1, rotated_at = $2 WHERE subscription_id = $1 RETURNING subscription_id;


-- name: subscriptions_with
-- Purpose: return some subscriptions.
-- Arguments: $1 subscription_ids.
-- Result: subscriptions with the person's name.
SELECT subscription.*, person.name AS person
FROM subscription
JOIN person ON person.person_id = subscription.person_id
WHERE subscription.subscription_id = ANY($1::int[]);


-- name: watch_active_batches
-- Purpose: watch the active batches, and the latest ones that ended lately: they may have been active only between two rounds.
-- Arguments: $1 since when a batch ended lately, $2 number of latest batches.
-- Result: none.
INSERT INTO batch_watch (batch_id, reported)
SELECT batch_id, 0 FROM batch WHERE state = 'active'
UNION ALL
SELECT batch_id, 0
FROM (SELECT batch_id, ended_at FROM batch ORDER BY batch_id DESC LIMIT $2) AS latest
WHERE ended_at >= $1
ON CONFLICT (batch_id) DO NOTHING;


-- name: watch_results
-- Purpose: note the results that the watched batches have reported so far.
-- Arguments: none.
-- Result: none.
UPDATE batch_watch SET reported = counted.reported
FROM (
    SELECT watch.batch_id, (
        SELECT coalesce(sum(reported), 0)::bigint FROM batch_count WHERE batch_count.batch_id = watch.batch_id
    ) AS reported
    FROM batch_watch AS watch
) AS counted
WHERE batch_watch.batch_id = counted.batch_id AND batch_watch.reported <> counted.reported;


-- name: watch_no_ended_batches
-- Purpose: stop watching batches that ended and whose event exists, or that ended long ago.
-- Arguments: $1 since when a batch ended lately.
-- Result: none.
DELETE FROM batch_watch
USING batch
WHERE batch.batch_id = batch_watch.batch_id
    AND batch.state <> 'active'
    AND (
        batch.ended_at < $1
        OR EXISTS (
            SELECT FROM event
            WHERE event.key = 'batch_done ' || batch.batch_id || ' ' || round(batch.ended_at)::bigint
        )
    );
