-- Look
;

-- AcquireUnheld
;

-- DrawUnheld
;

-- OutcomeUnheld
;

-- Guard
;

-- GuardAll
;

-- Pick
/*M! SET STATEMENT in_predicate_conversion_threshold=0 FOR */ SELECT LOCK_KEY, CLIENT_ID FROM INT_LOCK FORCE INDEX (PRIMARY) WHERE REGION = :region AND LOCK_KEY IN (:keys) AND CLIENT_ID IN (:holders) AND EXPIRED_AFTER >= UTC_TIMESTAMP(6) FOR UPDATE NOWAIT;

-- PickAll
;

-- PickRow
;

-- IfAll
;

-- AllPicked
;

-- PickAny
/*M! SET STATEMENT in_predicate_conversion_threshold=0 FOR */ SELECT LOCK_KEY FROM INT_LOCK FORCE INDEX (PRIMARY) WHERE REGION = :region AND LOCK_KEY IN (:keys) AND COALESCE(LENGTH(CLIENT_ID), 0) >= 0 FOR UPDATE NOWAIT;

-- PickClient
SELECT LOCK_KEY FROM INT_LOCK WHERE REGION = :region AND SUBSTR(CAST(CLIENT_ID AS BINARY), 1, LENGTH(:client)) = CAST(:client AS BINARY) AND LENGTH(RTRIM(CLIENT_ID)) = LENGTH(:client) + 11 LIMIT 999;

-- PickExpired
SELECT LOCK_KEY FROM INT_LOCK WHERE REGION = :region AND EXPIRED_AFTER < TIMESTAMPADD(MICROSECOND, -1000000 * (MICROSECOND(EXPIRED_AFTER) = 0), UTC_TIMESTAMP(6)) LIMIT 999;

-- Fence
SHOW CREATE TABLE INT_LOCK_FENCE;

-- Cluster
SELECT 'autocommit', IF(@@SESSION.autocommit, 'ON', 'OFF')
UNION ALL SELECT 'session', CONCAT_WS(', ', IF(@@SESSION.sql_select_limit < 4294967295 AND (@@SESSION.sql_select_limit > 0 OR @@version_comment NOT LIKE '%(Git%'), CONCAT('sql_select_limit=', @@SESSION.sql_select_limit), NULL),
IF(@@SESSION.sql_safe_updates, 'sql_safe_updates=1', NULL), IF(@@SESSION.completion_type NOT IN ('NO_CHAIN', '0'), CONCAT('completion_type=', @@SESSION.completion_type), NULL)) UNION ALL SELECT 'session', IF(@@SESSION.tidb_txn_mode = 'pessimistic', '', CONCAT(' tidb_txn_mode=', @@SESSION.tidb_txn_mode))
LIMIT 1000;

-- ClusterVariables
SELECT 'autocommit', IF(@@SESSION.autocommit, 'ON', 'OFF')
UNION ALL SELECT 'session', CONCAT_WS(', ', IF(@@SESSION.sql_select_limit < 4294967295 AND (@@SESSION.sql_select_limit > 0 OR @@version_comment NOT LIKE '%(Git%'), CONCAT('sql_select_limit=', @@SESSION.sql_select_limit), NULL),
IF(@@SESSION.sql_safe_updates, 'sql_safe_updates=1', NULL), IF(@@SESSION.completion_type NOT IN ('NO_CHAIN', '0'), CONCAT('completion_type=', @@SESSION.completion_type), NULL)) UNION ALL SELECT 'session', IF(@@SESSION.tidb_txn_mode = 'pessimistic', '', CONCAT(' tidb_txn_mode=', @@SESSION.tidb_txn_mode))
LIMIT 1000;

-- Pin
;

