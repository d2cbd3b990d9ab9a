-- Begin
SET @sqllock_wait_timeout = @@SESSION.wait_timeout, SESSION wait_timeout = 5;

-- Take
SELECT COALESCE(GET_LOCK(CONCAT('sqllock ', SHA2(CONCAT(COALESCE(NULLIF('', ''), DATABASE(), ''), '.', :turn), 224)), 60), 0);

-- End
DO RELEASE_LOCK(CONCAT('sqllock ', SHA2(CONCAT(COALESCE(NULLIF('', ''), DATABASE(), ''), '.', :turn), 224)));

-- After
SET SESSION wait_timeout = @sqllock_wait_timeout;

-- Session
;

-- Yield
;

