-- Acquire
/*M! SET STATEMENT innodb_lock_wait_timeout=1 FOR */ INSERT INTO INT_LOCK (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER)
SELECT :region, :key, :holder, UTC_TIMESTAMP(6), TIMESTAMPADD(MICROSECOND, :left, UTC_TIMESTAMP(6)) FROM DUAL WHERE @@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa'
ON DUPLICATE KEY UPDATE
CLIENT_ID = IF(CLIENT_ID = :holder OR EXPIRED_AFTER < TIMESTAMPADD(MICROSECOND, -1000000 * (MICROSECOND(EXPIRED_AFTER) = 0), UTC_TIMESTAMP(6)), :holder, CLIENT_ID),
CREATED_DATE = IF(CLIENT_ID = :holder OR EXPIRED_AFTER < TIMESTAMPADD(MICROSECOND, -1000000 * (MICROSECOND(EXPIRED_AFTER) = 0), UTC_TIMESTAMP(6)), UTC_TIMESTAMP(6), CREATED_DATE),
EXPIRED_AFTER = IF(CLIENT_ID = :holder OR EXPIRED_AFTER < TIMESTAMPADD(MICROSECOND, -1000000 * (MICROSECOND(EXPIRED_AFTER) = 0), UTC_TIMESTAMP(6)), TIMESTAMPADD(MICROSECOND, :left, UTC_TIMESTAMP(6)), EXPIRED_AFTER);

-- AcquireAll
/*M! SET STATEMENT innodb_lock_wait_timeout=1 FOR */ INSERT INTO INT_LOCK (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER)
SELECT proposed.* FROM (:rows) AS proposed WHERE @@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa'
ON DUPLICATE KEY UPDATE
CLIENT_ID = IF(CLIENT_ID = VALUES(CLIENT_ID) OR EXPIRED_AFTER < TIMESTAMPADD(MICROSECOND, -1000000 * (MICROSECOND(EXPIRED_AFTER) = 0), UTC_TIMESTAMP(6)), VALUES(CLIENT_ID), CLIENT_ID),
CREATED_DATE = IF(CLIENT_ID = VALUES(CLIENT_ID) OR EXPIRED_AFTER < TIMESTAMPADD(MICROSECOND, -1000000 * (MICROSECOND(EXPIRED_AFTER) = 0), UTC_TIMESTAMP(6)), VALUES(CREATED_DATE), CREATED_DATE),
EXPIRED_AFTER = IF(CLIENT_ID = VALUES(CLIENT_ID) OR EXPIRED_AFTER < TIMESTAMPADD(MICROSECOND, -1000000 * (MICROSECOND(EXPIRED_AFTER) = 0), UTC_TIMESTAMP(6)), VALUES(EXPIRED_AFTER), EXPIRED_AFTER);

-- AcquireRow
SELECT :region AS a, :key AS b, :holder AS c, UTC_TIMESTAMP(6) AS d, TIMESTAMPADD(MICROSECOND, :left, UTC_TIMESTAMP(6)) AS e;

-- AcquireUnheld
/*M! SET STATEMENT innodb_lock_wait_timeout=1 FOR */ INSERT INTO INT_LOCK (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER)
SELECT :region, :key, :holder, UTC_TIMESTAMP(6), TIMESTAMPADD(MICROSECOND, :left, UTC_TIMESTAMP(6)) FROM DUAL WHERE @@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa' AND @sqllock_held = 0
ON DUPLICATE KEY UPDATE
CLIENT_ID = IF(CLIENT_ID = :holder OR EXPIRED_AFTER < TIMESTAMPADD(MICROSECOND, -1000000 * (MICROSECOND(EXPIRED_AFTER) = 0), UTC_TIMESTAMP(6)), :holder, CLIENT_ID),
CREATED_DATE = IF(CLIENT_ID = :holder OR EXPIRED_AFTER < TIMESTAMPADD(MICROSECOND, -1000000 * (MICROSECOND(EXPIRED_AFTER) = 0), UTC_TIMESTAMP(6)), UTC_TIMESTAMP(6), CREATED_DATE),
EXPIRED_AFTER = IF(CLIENT_ID = :holder OR EXPIRED_AFTER < TIMESTAMPADD(MICROSECOND, -1000000 * (MICROSECOND(EXPIRED_AFTER) = 0), UTC_TIMESTAMP(6)), TIMESTAMPADD(MICROSECOND, :left, UTC_TIMESTAMP(6)), EXPIRED_AFTER);

-- PeekCurrent
SET STATEMENT wsrep_sync_wait=1 FOR SELECT REGION, LOCK_KEY, COALESCE(CLIENT_ID, ''), TIMESTAMPDIFF(MICROSECOND, CREATED_DATE, UTC_TIMESTAMP(6)), TIMESTAMPDIFF(MICROSECOND, TIMESTAMPADD(MICROSECOND, -1000000 * (MICROSECOND(EXPIRED_AFTER) = 0), UTC_TIMESTAMP(6)), EXPIRED_AFTER) FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY IN (:keys) UNION ALL SELECT '', '', '', 0, 0 FROM DUAL WHERE NOT (@@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa');

-- Held
SELECT COUNT(*) FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder AND EXPIRED_AFTER >= UTC_TIMESTAMP(6) AND @@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa';

-- Renew
/*M! SET STATEMENT innodb_lock_wait_timeout=1 FOR */ UPDATE INT_LOCK SET EXPIRED_AFTER = GREATEST(EXPIRED_AFTER, TIMESTAMPADD(MICROSECOND, :left, UTC_TIMESTAMP(6))) WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder AND EXPIRED_AFTER >= UTC_TIMESTAMP(6) AND @@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa';

-- Guard
SELECT 1 FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder AND EXPIRED_AFTER >= UTC_TIMESTAMP(6) AND @@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa' LOCK IN SHARE MODE;

-- GuardByWriting
UPDATE INT_LOCK FORCE INDEX (PRIMARY) SET CREATED_DATE = TIMESTAMPADD(MICROSECOND, CASE WHEN MICROSECOND(CREATED_DATE) % 10 > 0 THEN 1 WHEN MICROSECOND(CREATED_DATE) % 100 > 0 THEN 10 WHEN MICROSECOND(CREATED_DATE) % 1000 > 0 THEN 100 ELSE 1000 END, CREATED_DATE) WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder AND EXPIRED_AFTER >= UTC_TIMESTAMP(6) AND @@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa';

-- GuardAll
/*M! SET STATEMENT in_predicate_conversion_threshold=0 FOR */ SELECT COUNT(*) FROM INT_LOCK FORCE INDEX (PRIMARY) WHERE REGION = :region AND LOCK_KEY IN (:keys) AND CLIENT_ID IN (:holders) AND EXPIRED_AFTER >= UTC_TIMESTAMP(6) AND @@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa' LOCK IN SHARE MODE;

-- GuardAllByWriting
UPDATE INT_LOCK FORCE INDEX (PRIMARY) SET CREATED_DATE = TIMESTAMPADD(MICROSECOND, CASE WHEN MICROSECOND(CREATED_DATE) % 10 > 0 THEN 1 WHEN MICROSECOND(CREATED_DATE) % 100 > 0 THEN 10 WHEN MICROSECOND(CREATED_DATE) % 1000 > 0 THEN 100 ELSE 1000 END, CREATED_DATE) WHERE REGION = :region AND LOCK_KEY IN (:keys) AND CLIENT_ID IN (:holders) AND EXPIRED_AFTER >= UTC_TIMESTAMP(6) AND @@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa';

-- Pick
/*M! SET STATEMENT in_predicate_conversion_threshold=0 FOR */ SELECT LOCK_KEY, CLIENT_ID FROM INT_LOCK FORCE INDEX (PRIMARY) WHERE REGION = :region AND LOCK_KEY IN (:keys) AND CLIENT_ID IN (:holders) AND EXPIRED_AFTER >= UTC_TIMESTAMP(6) AND @@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa' FOR UPDATE SKIP LOCKED;

-- PickAll
/*M! SET STATEMENT in_predicate_conversion_threshold=0 FOR */ SELECT COUNT(*) INTO @sqllock_picked FROM INT_LOCK FORCE INDEX (PRIMARY) WHERE (LOCK_KEY, CLIENT_ID) IN (:rows) AND REGION = :region AND LOCK_KEY IN (:keys) AND CLIENT_ID IN (:holders) AND EXPIRED_AFTER >= UTC_TIMESTAMP(6) AND @@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa' FOR UPDATE SKIP LOCKED;

-- HeldAll
SELECT LOCK_KEY, CLIENT_ID FROM INT_LOCK FORCE INDEX (PRIMARY) WHERE REGION = :region AND LOCK_KEY IN (:keys) AND CLIENT_ID IN (:holders) AND EXPIRED_AFTER >= UTC_TIMESTAMP(6) AND @@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa';

-- Keep
/*M! SET STATEMENT innodb_lock_wait_timeout=1 FOR */ UPDATE INT_LOCK SET CLIENT_ID = :next, EXPIRED_AFTER = TIMESTAMPADD(MICROSECOND, :left, UTC_TIMESTAMP(6)) WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder AND EXPIRED_AFTER >= UTC_TIMESTAMP(6) AND @@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa';

