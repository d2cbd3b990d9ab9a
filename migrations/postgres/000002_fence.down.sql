-- A sequence made anew counts from 1: tokens given out before are then higher
-- than those that follow.
DROP SEQUENCE IF EXISTS {prefix}LOCK_FENCE;
