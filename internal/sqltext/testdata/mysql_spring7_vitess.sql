-- Look
;

-- AcquireUnheld
;

-- DrawUnheld
;

-- OutcomeUnheld
;

-- PickAll
;

-- PickRow
;

-- IfAll
;

-- AllPicked
;

