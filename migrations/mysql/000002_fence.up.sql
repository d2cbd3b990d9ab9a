-- The source of fencing tokens, because MySQL has no sequences. Spring does not use it.
CREATE TABLE IF NOT EXISTS {prefix}LOCK_FENCE (
	ID BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY
) ENGINE=InnoDB;
