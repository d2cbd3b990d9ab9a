-- Acquire
/*M! SET STATEMENT innodb_lock_wait_timeout=1 FOR */ INSERT INTO INT_LOCK (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE)
SELECT :region, :key, :holder, UTC_TIMESTAMP(6) FROM (SELECT NULL AS EXPIRED_AFTER) AS four_columns WHERE @@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa'
ON DUPLICATE KEY UPDATE
CLIENT_ID = IF(CLIENT_ID = :holder OR TIMESTAMPADD(MICROSECOND, :ttl, CREATED_DATE) < TIMESTAMPADD(MICROSECOND, -1000000 * (MICROSECOND(CREATED_DATE) = 0), UTC_TIMESTAMP(6)) AND EXPIRED_AFTER IS NULL, :holder, CLIENT_ID),
CREATED_DATE = IF(CLIENT_ID = :holder OR TIMESTAMPADD(MICROSECOND, :ttl, CREATED_DATE) < TIMESTAMPADD(MICROSECOND, -1000000 * (MICROSECOND(CREATED_DATE) = 0), UTC_TIMESTAMP(6)) AND EXPIRED_AFTER IS NULL, UTC_TIMESTAMP(6), CREATED_DATE);

-- AcquireAll
/*M! SET STATEMENT innodb_lock_wait_timeout=1 FOR */ INSERT INTO INT_LOCK (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE)
SELECT a, b, c, d FROM (:rows) AS proposed, (SELECT NULL AS EXPIRED_AFTER) AS four_columns WHERE @@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa'
ON DUPLICATE KEY UPDATE
CLIENT_ID = IF(CLIENT_ID = VALUES(CLIENT_ID) OR TIMESTAMPADD(MICROSECOND, :ttl, CREATED_DATE) < TIMESTAMPADD(MICROSECOND, -1000000 * (MICROSECOND(CREATED_DATE) = 0), UTC_TIMESTAMP(6)) AND EXPIRED_AFTER IS NULL, VALUES(CLIENT_ID), CLIENT_ID),
CREATED_DATE = IF(CLIENT_ID = VALUES(CLIENT_ID) OR TIMESTAMPADD(MICROSECOND, :ttl, CREATED_DATE) < TIMESTAMPADD(MICROSECOND, -1000000 * (MICROSECOND(CREATED_DATE) = 0), UTC_TIMESTAMP(6)) AND EXPIRED_AFTER IS NULL, VALUES(CREATED_DATE), CREATED_DATE);

-- AcquireUnheld
/*M! SET STATEMENT innodb_lock_wait_timeout=1 FOR */ INSERT INTO INT_LOCK (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE)
SELECT :region, :key, :holder, UTC_TIMESTAMP(6) FROM (SELECT NULL AS EXPIRED_AFTER) AS four_columns WHERE @@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa' AND @sqllock_held = 0
ON DUPLICATE KEY UPDATE
CLIENT_ID = IF(CLIENT_ID = :holder OR TIMESTAMPADD(MICROSECOND, :ttl, CREATED_DATE) < TIMESTAMPADD(MICROSECOND, -1000000 * (MICROSECOND(CREATED_DATE) = 0), UTC_TIMESTAMP(6)) AND EXPIRED_AFTER IS NULL, :holder, CLIENT_ID),
CREATED_DATE = IF(CLIENT_ID = :holder OR TIMESTAMPADD(MICROSECOND, :ttl, CREATED_DATE) < TIMESTAMPADD(MICROSECOND, -1000000 * (MICROSECOND(CREATED_DATE) = 0), UTC_TIMESTAMP(6)) AND EXPIRED_AFTER IS NULL, UTC_TIMESTAMP(6), CREATED_DATE);

-- PeekCurrent
SET STATEMENT wsrep_sync_wait=1 FOR SELECT REGION, LOCK_KEY, COALESCE(CLIENT_ID, ''), TIMESTAMPDIFF(MICROSECOND, CREATED_DATE, UTC_TIMESTAMP(6)), TIMESTAMPDIFF(MICROSECOND, TIMESTAMPADD(MICROSECOND, -1000000 * (MICROSECOND(CREATED_DATE) = 0), UTC_TIMESTAMP(6)), TIMESTAMPADD(MICROSECOND, :ttl, CREATED_DATE)) FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY IN (:keys) UNION ALL SELECT '', '', '', 0, 0 FROM DUAL WHERE NOT (@@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa');

-- Held
SELECT COUNT(*) FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder AND TIMESTAMPADD(MICROSECOND, :ttl, CREATED_DATE) >= UTC_TIMESTAMP(6) AND @@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa';

-- Renew
/*M! SET STATEMENT innodb_lock_wait_timeout=1 FOR */ UPDATE INT_LOCK JOIN (SELECT NULL AS EXPIRED_AFTER) AS four_columns SET CREATED_DATE = TIMESTAMPADD(MICROSECOND, :shift, UTC_TIMESTAMP(6)) WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder AND TIMESTAMPADD(MICROSECOND, :ttl, CREATED_DATE) >= UTC_TIMESTAMP(6) AND @@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa' AND EXPIRED_AFTER IS NULL;

-- Guard
SELECT 1 FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder AND TIMESTAMPADD(MICROSECOND, :ttl, CREATED_DATE) >= UTC_TIMESTAMP(6) AND @@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa' LOCK IN SHARE MODE;

-- GuardByWriting
UPDATE INT_LOCK FORCE INDEX (PRIMARY) SET CREATED_DATE = TIMESTAMPADD(MICROSECOND, CASE WHEN MICROSECOND(CREATED_DATE) % 10 > 0 THEN 1 WHEN MICROSECOND(CREATED_DATE) % 100 > 0 THEN 10 WHEN MICROSECOND(CREATED_DATE) % 1000 > 0 THEN 100 ELSE 1000 END, CREATED_DATE) WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder AND TIMESTAMPADD(MICROSECOND, :ttl, CREATED_DATE) >= UTC_TIMESTAMP(6) AND @@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa';

-- GuardAll
/*M! SET STATEMENT in_predicate_conversion_threshold=0 FOR */ SELECT COUNT(*) FROM INT_LOCK FORCE INDEX (PRIMARY) WHERE REGION = :region AND LOCK_KEY IN (:keys) AND CLIENT_ID IN (:holders) AND TIMESTAMPADD(MICROSECOND, :ttl, CREATED_DATE) >= UTC_TIMESTAMP(6) AND @@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa' LOCK IN SHARE MODE;

-- GuardAllByWriting
UPDATE INT_LOCK FORCE INDEX (PRIMARY) SET CREATED_DATE = TIMESTAMPADD(MICROSECOND, CASE WHEN MICROSECOND(CREATED_DATE) % 10 > 0 THEN 1 WHEN MICROSECOND(CREATED_DATE) % 100 > 0 THEN 10 WHEN MICROSECOND(CREATED_DATE) % 1000 > 0 THEN 100 ELSE 1000 END, CREATED_DATE) WHERE REGION = :region AND LOCK_KEY IN (:keys) AND CLIENT_ID IN (:holders) AND TIMESTAMPADD(MICROSECOND, :ttl, CREATED_DATE) >= UTC_TIMESTAMP(6) AND @@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa';

-- Pick
/*M! SET STATEMENT in_predicate_conversion_threshold=0 FOR */ SELECT LOCK_KEY, CLIENT_ID FROM INT_LOCK FORCE INDEX (PRIMARY), (SELECT NULL AS EXPIRED_AFTER) AS four_columns WHERE REGION = :region AND LOCK_KEY IN (:keys) AND CLIENT_ID IN (:holders) AND TIMESTAMPADD(MICROSECOND, :ttl, CREATED_DATE) >= UTC_TIMESTAMP(6) AND @@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa' AND EXPIRED_AFTER IS NULL FOR UPDATE SKIP LOCKED;

-- PickAll
/*M! SET STATEMENT in_predicate_conversion_threshold=0 FOR */ SELECT COUNT(*) INTO @sqllock_picked FROM INT_LOCK FORCE INDEX (PRIMARY), (SELECT NULL AS EXPIRED_AFTER) AS four_columns WHERE (LOCK_KEY, CLIENT_ID) IN (:rows) AND REGION = :region AND LOCK_KEY IN (:keys) AND CLIENT_ID IN (:holders) AND TIMESTAMPADD(MICROSECOND, :ttl, CREATED_DATE) >= UTC_TIMESTAMP(6) AND @@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa' AND EXPIRED_AFTER IS NULL FOR UPDATE SKIP LOCKED;

-- HeldAll
SELECT LOCK_KEY, CLIENT_ID FROM INT_LOCK FORCE INDEX (PRIMARY) WHERE REGION = :region AND LOCK_KEY IN (:keys) AND CLIENT_ID IN (:holders) AND TIMESTAMPADD(MICROSECOND, :ttl, CREATED_DATE) >= UTC_TIMESTAMP(6) AND @@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa';

-- Keep
/*M! SET STATEMENT innodb_lock_wait_timeout=1 FOR */ UPDATE INT_LOCK JOIN (SELECT NULL AS EXPIRED_AFTER) AS four_columns SET CLIENT_ID = :next, CREATED_DATE = TIMESTAMPADD(MICROSECOND, :shift, UTC_TIMESTAMP(6)) WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder AND TIMESTAMPADD(MICROSECOND, :ttl, CREATED_DATE) >= UTC_TIMESTAMP(6) AND @@wsrep_on AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM /*M! information_schema *//*!80000 performance_schema */.global_status WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '0000-aaaa' AND EXPIRED_AFTER IS NULL;

