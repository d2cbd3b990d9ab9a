-- Where fencing tokens are drawn from: MySQL has no sequences. Spring does not
-- see it.
CREATE TABLE IF NOT EXISTS {prefix}LOCK_FENCE (
	ID BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY
) ENGINE=InnoDB;
