-- PickAll
;

-- PickRow
;

-- IfAll
;

-- AllPicked
;

