-- Outcome
SELECT COUNT(*), 0 FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder;

-- DrawUnheld
;

-- OutcomeUnheld
SELECT COUNT(*), 0, @sqllock_held, @sqllock_holder, @sqllock_age, @sqllock_left FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder AND @sqllock_held = 0;

-- Number
SELECT 0;

-- DrawOne
;

-- Draw
;

-- Trim
;

-- Fence
;

