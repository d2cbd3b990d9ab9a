package servers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/probe"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/internal/test/program"
	"github.com/sqllock/sqllock/migrations"
)

// A variant changes the tables that `migrate up` has made, or leaves them as they are.
type variant struct {
	name    string
	on      []string // servers
	change  string   // statements, separated by semicolons; P_ is the prefix; one after a ! may fail
	fault   string   // what is wrong, or "" if locks work
	bears   bool     // whether Open accepts it all the same
	byHand  bool     // whether the cure is no list of statements
	layout  dialect.Layout
	plain   bool   // keys are stored as they are
	another string // another fault, which is shown with the first
}

const (
	surrogate  = "has no unique key of LOCK_KEY and REGION"
	other      = "takes two locks for one"
	mayBeNull  = "has a column EXPIRED_AFTER that may be NULL"
	newTable   = "CREATE TABLE P_LOCK (LOCK_KEY CHAR(36) NOT NULL, REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36), CREATED_DATE TIMESTAMP NOT NULL, EXPIRED_AFTER TIMESTAMP NOT NULL"
	farServer  = "!CREATE EXTENSION IF NOT EXISTS postgres_fdw SCHEMA public; !CREATE SERVER IF NOT EXISTS SQLLOCK_FAR FOREIGN DATA WRAPPER postgres_fdw; ALTER TABLE P_LOCK RENAME TO P_REAL; "
	withoutEnd = "ALTER TABLE P_LOCK ALTER EXPIRED_AFTER DROP NOT NULL; INSERT INTO P_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE) VALUES ('a', 'b', 'c', '2026-01-01')"
	secondLock = "INSERT INTO P_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER) VALUES ('a', 'b', 'c', '2026-01-01', '2026-01-01')"
)

var (
	postgreses = []string{server.Postgres, server.PostgresNewest}
	mariaMySQL = []string{server.MySQL, server.OracleMySQL}
	onMariaDB  = []string{server.MySQL}
	onMySQL    = []string{server.OracleMySQL}
	onSQLite   = []string{server.SQLite}
	onAll      = slices.Concat(postgreses, mariaMySQL, onSQLite)
)

var variants = []variant{
	{name: "as migrated", on: onAll},
	{name: "as migrated for Spring 6", on: onAll, layout: dialect.Spring6},
	{name: "plain keys as migrated", on: onAll, plain: true},

	// The unique key.
	{name: "another primary key", on: postgreses, change: "ALTER TABLE P_LOCK DROP CONSTRAINT P_LOCK_PK, ADD ID BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", fault: surrogate},
	{name: "another primary key", on: mariaMySQL, change: "ALTER TABLE P_LOCK DROP PRIMARY KEY, ADD ID BIGINT AUTO_INCREMENT PRIMARY KEY", fault: surrogate},
	{name: "another primary key", on: onSQLite, change: "DROP TABLE P_LOCK; " + newTable + ", ID INTEGER PRIMARY KEY)", fault: surrogate},
	{name: "a key of its own beside it", on: postgreses, change: "ALTER TABLE P_LOCK DROP CONSTRAINT P_LOCK_PK, ADD ID BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, ADD UNIQUE (REGION, LOCK_KEY)"},
	{name: "a key of its own beside it", on: mariaMySQL, change: "ALTER TABLE P_LOCK DROP PRIMARY KEY, ADD ID BIGINT AUTO_INCREMENT PRIMARY KEY, ADD UNIQUE P_K (REGION, LOCK_KEY)"},
	{name: "a key of its own beside it", on: onSQLite, change: "DROP TABLE P_LOCK; " + newTable + ", ID INTEGER PRIMARY KEY, UNIQUE (REGION, LOCK_KEY))"},
	{name: "a unique index alone", on: postgreses, change: "ALTER TABLE P_LOCK DROP CONSTRAINT P_LOCK_PK; CREATE UNIQUE INDEX P_K ON P_LOCK (REGION DESC, LOCK_KEY) INCLUDE (CLIENT_ID)"},
	{name: "a unique index alone", on: mariaMySQL, change: "ALTER TABLE P_LOCK DROP PRIMARY KEY, ADD UNIQUE P_K (LOCK_KEY, REGION)"},
	{name: "a key that others give", on: onMySQL, change: "DROP TABLE P_LOCK; CREATE TABLE P_LOCK (ID CHAR(36) DEFAULT (UUID()) PRIMARY KEY, LOCK_KEY CHAR(36) NOT NULL, REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36), CREATED_DATE DATETIME(6) NOT NULL, EXPIRED_AFTER DATETIME(6) NOT NULL, UNIQUE P_K (LOCK_KEY, REGION)) COLLATE utf8mb4_bin"},
	{name: "a key that others give", on: onMariaDB, change: "ALTER TABLE P_LOCK DROP PRIMARY KEY, ADD ID CHAR(36) DEFAULT UUID() PRIMARY KEY, ADD UNIQUE P_K (LOCK_KEY, REGION)"},
	{name: "no key", on: postgreses, change: "ALTER TABLE P_LOCK DROP CONSTRAINT P_LOCK_PK", fault: surrogate},
	{name: "no key", on: mariaMySQL, change: "ALTER TABLE P_LOCK DROP PRIMARY KEY", fault: surrogate},
	{name: "no key", on: onSQLite, change: "DROP TABLE P_LOCK; " + newTable + ")", fault: surrogate},
	{name: "the server's invisible key", on: onMySQL, change: "SET SESSION sql_generate_invisible_primary_key = 1; DROP TABLE P_LOCK; " +
		"CREATE TABLE P_LOCK (LOCK_KEY CHAR(36) NOT NULL, REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36), CREATED_DATE DATETIME(6) NOT NULL, EXPIRED_AFTER DATETIME(6) NOT NULL); SET SESSION sql_generate_invisible_primary_key = 0", fault: surrogate},
	{name: "LOCK_KEY alone", on: postgreses, change: "ALTER TABLE P_LOCK DROP CONSTRAINT P_LOCK_PK, ADD PRIMARY KEY (LOCK_KEY)", fault: surrogate, another: other},
	{name: "LOCK_KEY alone", on: mariaMySQL, change: "ALTER TABLE P_LOCK DROP PRIMARY KEY, ADD PRIMARY KEY (LOCK_KEY)", fault: surrogate, another: other},
	{name: "LOCK_KEY alone", on: onSQLite, change: "DROP TABLE P_LOCK; " + newTable + ", PRIMARY KEY (LOCK_KEY))", fault: surrogate, another: other},
	{name: "LOCK_KEY besides", on: onAll, change: "CREATE UNIQUE INDEX P_K ON P_LOCK (LOCK_KEY)", fault: other},
	{name: "CLIENT_ID besides", on: onAll, change: "CREATE UNIQUE INDEX P_K ON P_LOCK (CLIENT_ID)", fault: other},
	{name: "a column that is NULL besides", on: postgreses, change: "ALTER TABLE P_LOCK ADD NOTE INT UNIQUE"},
	{name: "a column that is NULL besides", on: mariaMySQL, change: "ALTER TABLE P_LOCK ADD NOTE INT UNIQUE"},
	{name: "a column that is NULL only once besides", on: postgreses, change: "ALTER TABLE P_LOCK ADD NOTE INT UNIQUE NULLS NOT DISTINCT", fault: other},
	{name: "a column that is the same besides", on: onAll, change: "ALTER TABLE P_LOCK ADD NOTE INT DEFAULT 1 NOT NULL; CREATE UNIQUE INDEX P_K ON P_LOCK (NOTE)", fault: other},
	{name: "more than the key besides", on: onAll, change: "CREATE UNIQUE INDEX P_K ON P_LOCK (CLIENT_ID, LOCK_KEY, REGION)"},
	{name: "a prefix", on: mariaMySQL, change: "ALTER TABLE P_LOCK DROP PRIMARY KEY, ADD PRIMARY KEY (LOCK_KEY(10), REGION)", fault: surrogate, another: other},
	{name: "the other order", on: mariaMySQL, change: "ALTER TABLE P_LOCK DROP PRIMARY KEY, ADD PRIMARY KEY (REGION DESC, LOCK_KEY)"},
	{name: "an expression", on: postgreses, change: "ALTER TABLE P_LOCK DROP CONSTRAINT P_LOCK_PK; CREATE UNIQUE INDEX P_K ON P_LOCK (lower(LOCK_KEY), REGION)", fault: surrogate, another: other},
	{name: "an expression", on: onMySQL, change: "ALTER TABLE P_LOCK DROP PRIMARY KEY, ADD UNIQUE P_K ((LOWER(LOCK_KEY)), REGION)", fault: surrogate, another: other},
	{name: "an expression", on: onSQLite, change: "DROP TABLE P_LOCK; " + newTable + "); CREATE UNIQUE INDEX P_K ON P_LOCK (lower(LOCK_KEY), REGION)", fault: surrogate, another: other},
	{name: "a partial index", on: postgreses, change: "ALTER TABLE P_LOCK DROP CONSTRAINT P_LOCK_PK; CREATE UNIQUE INDEX P_K ON P_LOCK (LOCK_KEY, REGION) WHERE REGION <> 'x'", fault: "is partial"},
	{name: "a partial index", on: onSQLite, change: "DROP TABLE P_LOCK; " + newTable + "); CREATE UNIQUE INDEX P_K ON P_LOCK (LOCK_KEY, REGION) WHERE REGION <> 'x'", fault: "is partial"},
	{name: "a deferrable key", on: postgreses, change: "ALTER TABLE P_LOCK DROP CONSTRAINT P_LOCK_PK, ADD PRIMARY KEY (LOCK_KEY, REGION) DEFERRABLE", fault: "is deferrable"},
	{name: "a deferrable key besides", on: postgreses, change: "ALTER TABLE P_LOCK ADD UNIQUE (LOCK_KEY, REGION) DEFERRABLE", fault: "is deferrable"},
	{name: "an exclusion", on: postgreses, change: "ALTER TABLE P_LOCK DROP CONSTRAINT P_LOCK_PK, ADD EXCLUDE USING btree (LOCK_KEY WITH =, REGION WITH =)", fault: "is an exclusion"},
	{name: "an invalid index", on: postgreses, change: "ALTER TABLE P_LOCK DROP CONSTRAINT P_LOCK_PK; " + secondLock + "; " + secondLock + "; !CREATE UNIQUE INDEX CONCURRENTLY P_K ON P_LOCK (LOCK_KEY, REGION)", fault: "is invalid"},
	{name: "an invisible index", on: onMySQL, change: "ALTER TABLE P_LOCK DROP PRIMARY KEY, ADD ID BIGINT AUTO_INCREMENT PRIMARY KEY, ADD UNIQUE P_K (LOCK_KEY, REGION) INVISIBLE", fault: "is invisible"},
	{name: "an ignored index", on: onMariaDB, change: "ALTER TABLE P_LOCK DROP PRIMARY KEY, ADD ID BIGINT AUTO_INCREMENT PRIMARY KEY, ADD UNIQUE P_K (LOCK_KEY, REGION) IGNORED", fault: "is ignored"},

	// What kind of table it is.
	{name: "MyISAM", on: mariaMySQL, change: "ALTER TABLE P_LOCK ENGINE=MyISAM", fault: "has the engine MyISAM"},
	{name: "MEMORY", on: mariaMySQL, change: "ALTER TABLE P_LOCK ENGINE=MEMORY", fault: "has the engine MEMORY"},
	{name: "Aria", on: onMariaDB, change: "ALTER TABLE P_LOCK ENGINE=Aria", fault: "has the engine Aria"},
	{name: "tokens in MyISAM", on: onMySQL, change: "ALTER TABLE P_LOCK_FENCE ENGINE=MyISAM", fault: "P_LOCK_FENCE has the engine MyISAM"},
	{name: "tokens in MyISAM", on: onMariaDB, change: "DROP SEQUENCE P_LOCK_FENCE; CREATE TABLE P_LOCK_FENCE (ID BIGINT AUTO_INCREMENT PRIMARY KEY) ENGINE=MyISAM", fault: "P_LOCK_FENCE has the engine MyISAM"},
	{name: "a sequence in MyISAM", on: onMariaDB, change: "DROP SEQUENCE P_LOCK_FENCE; CREATE SEQUENCE P_LOCK_FENCE NOCACHE ENGINE=MyISAM", fault: "P_LOCK_FENCE has the engine MyISAM"},
	{name: "names in MyISAM", on: mariaMySQL, change: "ALTER TABLE P_LOCK_NAME ENGINE=MyISAM", fault: "P_LOCK_NAME has the engine MyISAM"},
	{name: "UNLOGGED", on: postgreses, change: "ALTER TABLE P_LOCK SET UNLOGGED", fault: "is UNLOGGED"},
	{name: "an UNLOGGED sequence", on: postgreses, change: "ALTER SEQUENCE P_LOCK_FENCE SET UNLOGGED", fault: "P_LOCK_FENCE is UNLOGGED"},
	{name: "a view", on: postgreses, change: "ALTER TABLE P_LOCK RENAME TO P_REAL; CREATE VIEW P_LOCK AS SELECT * FROM P_REAL", fault: "is a view", byHand: true},
	{name: "a view", on: mariaMySQL, change: "ALTER TABLE P_LOCK RENAME TO P_REAL; CREATE VIEW P_LOCK AS SELECT * FROM P_REAL", fault: "is a view", byHand: true},
	{name: "a view", on: onSQLite, change: "ALTER TABLE P_LOCK RENAME TO P_REAL; CREATE VIEW P_LOCK AS SELECT * FROM P_REAL", fault: "is a view", byHand: true},
	{name: "a materialized view", on: postgreses, change: "ALTER TABLE P_LOCK RENAME TO P_REAL; CREATE MATERIALIZED VIEW P_LOCK AS SELECT * FROM P_REAL", fault: "is a view", byHand: true},
	{name: "a foreign table", on: postgreses, change: farServer + "CREATE FOREIGN TABLE P_LOCK (LOCK_KEY CHAR(36) NOT NULL, REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36), CREATED_DATE TIMESTAMP NOT NULL, EXPIRED_AFTER TIMESTAMP NOT NULL) SERVER SQLLOCK_FAR OPTIONS (table_name 'p_real')", fault: "is a foreign table", byHand: true},
	{name: "a partition that is foreign", on: postgreses, change: farServer + newTable + ") PARTITION BY LIST (REGION); CREATE FOREIGN TABLE P_LOCK_A PARTITION OF P_LOCK DEFAULT SERVER SQLLOCK_FAR OPTIONS (table_name 'p_real')", fault: "has the part p_lock_a, which is a foreign table", another: surrogate, byHand: true},
	{name: "a parent", on: postgreses, change: "CREATE TABLE P_CHILD () INHERITS (P_LOCK)", fault: "has tables that inherit from it"},
	{name: "a child", on: postgreses, change: "ALTER TABLE P_LOCK RENAME TO P_PARENT; CREATE TABLE P_LOCK (PRIMARY KEY (LOCK_KEY, REGION)) INHERITS (P_PARENT)"},
	{name: "partitions", on: postgreses, change: "DROP TABLE P_LOCK; " + newTable + ", PRIMARY KEY (LOCK_KEY, REGION)) PARTITION BY LIST (REGION); CREATE TABLE P_LOCK_A PARTITION OF P_LOCK DEFAULT"},
	{name: "partitions", on: mariaMySQL, change: "ALTER TABLE P_LOCK PARTITION BY KEY (LOCK_KEY) PARTITIONS 4"},
	{name: "without ROWIDs", on: onSQLite, change: "DROP TABLE P_LOCK; " + newTable + ", PRIMARY KEY (LOCK_KEY, REGION)) WITHOUT ROWID"},
	{
		name: "a partition that is UNLOGGED", on: postgreses, change: "DROP TABLE P_LOCK; " + newTable + ", PRIMARY KEY (LOCK_KEY, REGION)) PARTITION BY LIST (REGION); CREATE UNLOGGED TABLE P_LOCK_A PARTITION OF P_LOCK DEFAULT",
		fault: "has the part p_lock_a, which is UNLOGGED",
	},
	{
		name: "a key that not all partitions have", on: postgreses, change: "DROP TABLE P_LOCK; " + newTable + ") PARTITION BY LIST (REGION); CREATE TABLE P_LOCK_A PARTITION OF P_LOCK DEFAULT; CREATE UNIQUE INDEX P_K ON ONLY P_LOCK (LOCK_KEY, REGION)",
		fault: "is invalid",
	},

	// The source of fencing tokens.
	{name: "a cache", on: slices.Concat(postgreses, onMariaDB), change: "ALTER SEQUENCE P_LOCK_FENCE CACHE 50", fault: "is a sequence with a cache of"},
	{name: "an increment", on: slices.Concat(postgreses, onMariaDB), change: "ALTER SEQUENCE P_LOCK_FENCE INCREMENT BY 2", fault: "an increment of 2"},
	{name: "a cycle", on: slices.Concat(postgreses, onMariaDB), change: "ALTER SEQUENCE P_LOCK_FENCE CYCLE", fault: "CYCLE 1"},
	{name: "an end", on: slices.Concat(postgreses, onMariaDB), change: "ALTER SEQUENCE P_LOCK_FENCE MAXVALUE 1000000", fault: "numbers from 1 to 1000000"},
	{name: "an early beginning", on: slices.Concat(postgreses, onMariaDB), change: "ALTER SEQUENCE P_LOCK_FENCE MINVALUE -10", fault: "numbers from -10 to"},
	{name: "a small type", on: postgreses, change: "ALTER SEQUENCE P_LOCK_FENCE AS INTEGER", fault: "numbers from 1 to 2147483647"},
	{name: "a sequence of another table", on: postgreses, change: "CREATE TABLE P_OWNER (ID INT); ALTER SEQUENCE P_LOCK_FENCE OWNED BY P_OWNER.ID", fault: "belongs to p_owner"},
	{name: "a table of tokens", on: postgreses, change: "DROP SEQUENCE P_LOCK_FENCE; CREATE TABLE P_LOCK_FENCE (ID BIGINT)", fault: "is no sequence"},
	{name: "the numbers of another table", on: postgreses, change: "DROP SEQUENCE P_LOCK_FENCE; CREATE TABLE P_OWNER (ID BIGINT GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME P_LOCK_FENCE))", fault: "belongs to p_owner", byHand: true},
	{name: "tokens that end", on: onMySQL, change: "ALTER TABLE P_LOCK_FENCE MODIFY ID INT NOT NULL AUTO_INCREMENT", fault: "has no column ID BIGINT with AUTO_INCREMENT"},
	{name: "tokens without numbers", on: onMySQL, change: "ALTER TABLE P_LOCK_FENCE MODIFY ID BIGINT NOT NULL", fault: "has no column ID BIGINT with AUTO_INCREMENT"},
	{name: "tokens that come again", on: onSQLite, change: "DROP TABLE P_LOCK_FENCE; CREATE TABLE P_LOCK_FENCE (ID INTEGER PRIMARY KEY)", fault: "has no AUTOINCREMENT"},

	// The columns.
	{name: "an end that may be NULL", on: postgreses, change: withoutEnd, fault: mayBeNull},
	{name: "an end that may be NULL", on: mariaMySQL, change: "ALTER TABLE P_LOCK MODIFY EXPIRED_AFTER DATETIME(6); INSERT INTO P_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE) VALUES ('a', 'b', 'c', '2026-01-01')", fault: mayBeNull},
	{name: "an end that may be NULL", on: onSQLite, change: "DROP TABLE P_LOCK; CREATE TABLE P_LOCK (LOCK_KEY CHAR(36) NOT NULL, REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36), CREATED_DATE TIMESTAMP NOT NULL, EXPIRED_AFTER TIMESTAMP, PRIMARY KEY (LOCK_KEY, REGION)); " +
		"INSERT INTO P_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE) VALUES ('a', 'b', 'c', '2026-01-01')", fault: mayBeNull},
	{name: "a beginning that may be NULL", on: postgreses, layout: dialect.Spring6, change: "ALTER TABLE P_LOCK ALTER CREATED_DATE DROP NOT NULL; INSERT INTO P_LOCK (LOCK_KEY, REGION) VALUES ('a', 'b')", fault: "has a column CREATED_DATE that may be NULL"},
	{name: "a beginning that may be NULL", on: mariaMySQL, layout: dialect.Spring6, change: "ALTER TABLE P_LOCK MODIFY CREATED_DATE DATETIME(6); INSERT INTO P_LOCK (LOCK_KEY, REGION) VALUES ('a', 'b')", fault: "has a column CREATED_DATE that may be NULL"},
	{name: "an end that a constraint does not see", on: postgreses, change: withoutEnd + "; ALTER TABLE P_LOCK ADD CHECK (EXPIRED_AFTER IS NOT NULL) NOT VALID", fault: mayBeNull},
	{name: "an end that only new rows need", on: []string{server.PostgresNewest}, change: withoutEnd + "; ALTER TABLE P_LOCK ADD CONSTRAINT P_N NOT NULL EXPIRED_AFTER NOT VALID", fault: mayBeNull},
	{name: "an end by default", on: postgreses, change: "ALTER TABLE P_LOCK ALTER EXPIRED_AFTER SET DEFAULT '2026-01-01'", fault: "has a default for EXPIRED_AFTER", bears: true},
	{name: "an end by default", on: mariaMySQL, change: "ALTER TABLE P_LOCK ALTER EXPIRED_AFTER SET DEFAULT '2026-01-01'", fault: "has a default for EXPIRED_AFTER", bears: true},
	{name: "a column that must be filled", on: onAll, change: "ALTER TABLE P_LOCK ADD NOTE INT DEFAULT 1 NOT NULL"},
	{name: "a column that nothing fills", on: slices.Concat(postgreses, mariaMySQL), change: "ALTER TABLE P_LOCK ADD NOTE INT NOT NULL", fault: "has a column NOTE without a default", byHand: true},
	{name: "an end with its interim name", on: mariaMySQL, change: "UPDATE P_LOCK_MIGRATIONS SET version = 3; ALTER TABLE P_LOCK RENAME COLUMN EXPIRED_AFTER TO LEASE_END", fault: "has the column LEASE_END in place of EXPIRED_AFTER, since a migration to version 2 was interrupted"},
	{name: "a short CLIENT_ID", on: postgreses, change: "ALTER TABLE P_LOCK ALTER CLIENT_ID TYPE VARCHAR(30)", fault: "has a column CLIENT_ID of type character varying(30)"},
	{name: "a short CLIENT_ID", on: mariaMySQL, change: "ALTER TABLE P_LOCK MODIFY CLIENT_ID VARCHAR(30)", fault: "has a column CLIENT_ID of type varchar(30)"},
	{name: "times with a zone", on: postgreses, change: "ALTER TABLE P_LOCK ALTER EXPIRED_AFTER TYPE TIMESTAMPTZ", fault: "has a column EXPIRED_AFTER of type timestamp with time zone"},
	{name: "times with a zone", on: mariaMySQL, change: "ALTER TABLE P_LOCK MODIFY EXPIRED_AFTER TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)", fault: "has a column EXPIRED_AFTER of type timestamp(6)", another: "has a default for EXPIRED_AFTER"},
	{name: "a date", on: postgreses, change: "ALTER TABLE P_LOCK ALTER EXPIRED_AFTER TYPE DATE", fault: "has a column EXPIRED_AFTER of type date"},
	{name: "a date", on: mariaMySQL, change: "ALTER TABLE P_LOCK MODIFY EXPIRED_AFTER DATE NOT NULL", fault: "has a column EXPIRED_AFTER of type date"},
	{name: "times that are text", on: mariaMySQL, change: "ALTER TABLE P_LOCK MODIFY EXPIRED_AFTER VARCHAR(40) NOT NULL", fault: "has a column EXPIRED_AFTER of type varchar(40)"},
	{name: "times that are numbers", on: mariaMySQL, change: "ALTER TABLE P_LOCK MODIFY EXPIRED_AFTER BIGINT NOT NULL", fault: "has a column EXPIRED_AFTER of type bigint"},
	{name: "holders that are numbers", on: mariaMySQL, change: "ALTER TABLE P_LOCK MODIFY CLIENT_ID BIGINT", fault: "has a column CLIENT_ID of type bigint"},
	{name: "regions that are numbers", on: mariaMySQL, change: "ALTER TABLE P_LOCK MODIFY REGION INT NOT NULL", fault: "has a column REGION of type int"},
	{name: "holders that are UUIDs", on: slices.Concat(postgreses, onMariaDB), change: "ALTER TABLE P_LOCK DROP COLUMN CLIENT_ID; ALTER TABLE P_LOCK ADD CLIENT_ID UUID", fault: "has a column CLIENT_ID of type uuid"},
	{name: "keys that are UUIDs", on: postgreses, change: "ALTER TABLE P_LOCK ALTER LOCK_KEY TYPE UUID USING NULL", fault: "has a column LOCK_KEY of type uuid"},
	{name: "keys that are UUIDs", on: onMariaDB, plain: true, change: "ALTER TABLE P_LOCK MODIFY LOCK_KEY UUID NOT NULL", fault: "has a column LOCK_KEY of type uuid"},
	{name: "keys that are UUIDs, Spring's keys", on: onMariaDB, change: "ALTER TABLE P_LOCK MODIFY LOCK_KEY UUID NOT NULL"},
	{name: "keys of bytes", on: mariaMySQL, plain: true, change: "ALTER TABLE P_LOCK MODIFY LOCK_KEY BINARY(36) NOT NULL", fault: "has a column LOCK_KEY of type binary(36)"},
	{name: "keys of bytes, Spring's keys", on: mariaMySQL, change: "ALTER TABLE P_LOCK MODIFY LOCK_KEY BINARY(36) NOT NULL"},
	{name: "keys of any length", on: onMariaDB, change: "ALTER TABLE P_LOCK DROP PRIMARY KEY, MODIFY LOCK_KEY TEXT COLLATE utf8mb4_bin NOT NULL, ADD UNIQUE P_K (LOCK_KEY, REGION)"},
	{name: "times of a domain", on: postgreses, change: "CREATE DOMAIN P_TIME AS TIMESTAMP(6) NOT NULL; ALTER TABLE P_LOCK ALTER EXPIRED_AFTER TYPE P_TIME, ALTER EXPIRED_AFTER DROP NOT NULL"},
	{name: "whole seconds of a domain", on: postgreses, change: "CREATE DOMAIN P_TIME AS TIMESTAMP(0); ALTER TABLE P_LOCK ALTER EXPIRED_AFTER TYPE P_TIME", fault: "has a column EXPIRED_AFTER that keeps 0 digits of a second"},
	{name: "milliseconds", on: postgreses, change: "ALTER TABLE P_LOCK ALTER EXPIRED_AFTER TYPE TIMESTAMP(3)", fault: "has a column EXPIRED_AFTER that keeps 3 digits of a second", bears: true},
	{name: "another table", on: onAll, change: "ALTER TABLE P_LOCK RENAME COLUMN CREATED_DATE TO CREATED", fault: "has no column CREATED_DATE", byHand: true},
	{name: "whole seconds", on: postgreses, change: "ALTER TABLE P_LOCK ALTER EXPIRED_AFTER TYPE TIMESTAMP(0)", fault: "has a column EXPIRED_AFTER that keeps 0 digits of a second"},
	{name: "whole seconds", on: mariaMySQL, change: "ALTER TABLE P_LOCK MODIFY EXPIRED_AFTER DATETIME NOT NULL", fault: "has a column EXPIRED_AFTER that keeps 0 digits of a second"},
	{name: "milliseconds", on: mariaMySQL, change: "ALTER TABLE P_LOCK MODIFY EXPIRED_AFTER DATETIME(3) NOT NULL", fault: "has a column EXPIRED_AFTER that keeps 3 digits of a second", bears: true},

	// The order of keys, and which of them are the same.
	{name: "an order that may change", on: postgreses, plain: true, change: `ALTER TABLE P_LOCK ALTER LOCK_KEY TYPE CHAR(36) COLLATE "en-x-icu"`, fault: "whose order changes with the operating system", bears: true},
	{name: "an order that may change, Spring's keys", on: postgreses, change: `ALTER TABLE P_LOCK ALTER LOCK_KEY TYPE CHAR(36) COLLATE "en-x-icu"`},
	{
		name: "an order that has changed", on: postgreses, plain: true, change: `CREATE COLLATION P_C (provider = icu, locale = 'en'); UPDATE pg_collation SET collversion = '1.2' WHERE collname = 'p_c'; ALTER TABLE P_LOCK ALTER LOCK_KEY TYPE CHAR(36) COLLATE P_C`,
		fault: "has changed from 1.2 to", bears: true,
	},
	{name: "a collation that merges", on: postgreses, plain: true, change: "CREATE COLLATION P_C (provider = icu, locale = 'und-u-ks-level2', deterministic = false); ALTER TABLE P_LOCK ALTER LOCK_KEY TYPE CHAR(36) COLLATE P_C", fault: "takes some keys that differ", bears: true},
	{name: "a collation that merges", on: mariaMySQL, plain: true, change: "ALTER TABLE P_LOCK CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", fault: "takes some keys that differ", bears: true},
	{name: "a collation that merges, Spring's keys", on: mariaMySQL, change: "ALTER TABLE P_LOCK CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"},
	{
		name: "a collation that merges", on: onSQLite, plain: true, change: "DROP TABLE P_LOCK; CREATE TABLE P_LOCK (LOCK_KEY CHAR(36) NOT NULL COLLATE NOCASE, REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36), CREATED_DATE TIMESTAMP NOT NULL, EXPIRED_AFTER TIMESTAMP NOT NULL, PRIMARY KEY (LOCK_KEY, REGION))",
		fault: "takes some keys that differ", bears: true,
	},
	{
		name: "keys that look like numbers", on: onSQLite, plain: true, change: "DROP TABLE P_LOCK; CREATE TABLE P_LOCK (LOCK_KEY UUID NOT NULL, REGION STRING NOT NULL, CLIENT_ID VARCHAR(36), CREATED_DATE TIMESTAMP NOT NULL, EXPIRED_AFTER TIMESTAMP NOT NULL, PRIMARY KEY (LOCK_KEY, REGION))",
		fault: "has a column LOCK_KEY of type UUID, which does not keep each text as it is", another: "has a column REGION of type STRING, which does not keep each text",
	},
	{name: "UUIDs that do not look like numbers", on: onSQLite, change: "DROP TABLE P_LOCK; CREATE TABLE P_LOCK (LOCK_KEY UUID NOT NULL, REGION VARCHAR(100) NOT NULL, CLIENT_ID VARCHAR(36), CREATED_DATE TIMESTAMP NOT NULL, EXPIRED_AFTER TIMESTAMP NOT NULL, PRIMARY KEY (LOCK_KEY, REGION))"},
	{name: "keys of a STRICT table that are numbers", on: onSQLite, change: "DROP TABLE P_LOCK; CREATE TABLE P_LOCK (LOCK_KEY INT NOT NULL, REGION TEXT NOT NULL, CLIENT_ID ANY, CREATED_DATE TEXT NOT NULL, EXPIRED_AFTER TEXT NOT NULL, PRIMARY KEY (LOCK_KEY, REGION)) STRICT", fault: "has a column LOCK_KEY of type INT, which does not keep each text as it is"},
	{name: "holders that look like numbers", on: onSQLite, change: "DROP TABLE P_LOCK; CREATE TABLE P_LOCK (LOCK_KEY nvarchar(36) NOT NULL, REGION Text NOT NULL, CLIENT_ID BIGINT, CREATED_DATE TIMESTAMP NOT NULL, EXPIRED_AFTER TIMESTAMP NOT NULL, PRIMARY KEY (LOCK_KEY, REGION))", fault: "has a column CLIENT_ID of type BIGINT, which does not keep each text as it is"},
	{name: "texts of other types", on: onSQLite, change: "DROP TABLE P_LOCK; CREATE TABLE P_LOCK (LOCK_KEY nchar(36) NOT NULL, REGION CLOB NOT NULL, CLIENT_ID BLOB, CREATED_DATE TIMESTAMP NOT NULL, EXPIRED_AFTER TIMESTAMP NOT NULL, PRIMARY KEY (LOCK_KEY, REGION))"},
	{name: "texts of a STRICT table", on: onSQLite, change: "DROP TABLE P_LOCK; CREATE TABLE P_LOCK (LOCK_KEY ANY NOT NULL, REGION TEXT NOT NULL, CLIENT_ID ANY, CREATED_DATE TEXT NOT NULL, EXPIRED_AFTER TEXT NOT NULL, PRIMARY KEY (LOCK_KEY, REGION)) STRICT"},
	{name: "a history of rows", on: onMariaDB, change: "ALTER TABLE P_LOCK ADD SYSTEM VERSIONING", fault: "P_LOCK has SYSTEM VERSIONING", bears: true},
	{name: "a history of names", on: onMariaDB, change: "ALTER TABLE P_LOCK_NAME ADD SYSTEM VERSIONING", fault: "P_LOCK_NAME has SYSTEM VERSIONING", bears: true},
	{name: "too few characters", on: mariaMySQL, plain: true, change: "ALTER TABLE P_LOCK CONVERT TO CHARACTER SET utf8mb3", fault: "has a column LOCK_KEY with the character set utf8mb3"},
}

// Open, doctor and verify say the same of each table, and what they advise makes a table of it in which locks work.
// It takes seconds, because it makes thousands of statements and runs the command hundreds of times.
func TestFaults_OpenDoctorAndVerifyAgree(t *testing.T) {
	t.Parallel()
	var sqllock command // none with -short: it takes longer than the rest
	if !testing.Short() {
		sqllock = buildCommand(t)
	}
	for name, open := range map[string]func(testing.TB) *dbtest.DB{
		server.Postgres: dbtest.Postgres, server.PostgresNewest: dbtest.PostgresNewest, server.MySQL: dbtest.MySQL, server.OracleMySQL: dbtest.OracleMySQL, server.SQLite: dbtest.SQLite,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			for i, d := range variants {
				if slices.Contains(d.on, name) {
					t.Run(d.name, func(t *testing.T) {
						t.Parallel()
						if db.Name == "sqlite" { // one writer at a time
							d.check(t, sqllock, open(t), "P_")
							return
						}
						d.check(t, sqllock, db, "P"+string(rune('A'+i/26))+string(rune('A'+i%26))+"_")
					})
				}
			}
		})
	}
}

func (d variant) check(t *testing.T, c command, db *dbtest.DB, prefix string) {
	t.Helper()
	must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, &migrations.Options{Prefix: prefix, Layout: d.layout}))
	named := func(text string) string {
		return strings.NewReplacer("P_", prefix, "p_", strings.ToLower(prefix)).Replace(text)
	}
	put(t, db.DB, named(d.change))

	opts := &sqllock.RepositoryOptions{Prefix: prefix, TTL: ttl}
	if d.plain {
		opts.Keys = sqllock.PlainKeys
	}
	faults := check.Value(probe.Faults(unhurried(t), db.DB.DB, sqltext.Of(db.Dialect), check.Value(sqltext.NamesFor(prefix))(t), d.plain, false))(t)
	wanted := slices.DeleteFunc([]string{named(d.fault), named(d.another)}, func(text string) bool { return text == "" })
	if len(faults) != len(wanted) {
		t.Fatalf("faults %q, not %q", faults, wanted)
	}
	for i, f := range faults {
		check.Contains(t, f.String(), wanted[i])
	}
	_, err := sqllock.NewRepository(unhurried(t), db.DB.DB, db.Dialect, opts)
	d.checkError(t, err, faults)
	if c != "" {
		d.checkCommand(t, c, db, prefix, faults)
	}
	if !d.byHand {
		for _, f := range faults {
			cure(t, db, prefix, f.Cure)
		}
		r := repository(t, db, opts)
		registry := newRegistry(t, r, &sqllock.RegistryOptions{NoRenew: true})
		once(t, obtain(t, registry, "k").TryLock)
		once(t, obtainAll(t, registry, "k", "l").TryLock)
		must(t, check.ErrorOf(r.List(t.Context())))
	}
}

func (d variant) checkError(t *testing.T, err error, faults []probe.Fault) {
	t.Helper()
	if refused := d.fault != "" && !d.bears; refused != (err != nil) || err != nil && !errors.Is(err, sqllock.ErrSchema) {
		t.Errorf("Open: %v", err)
	}
	for _, f := range faults {
		if err != nil && !f.Bearable {
			check.Contains(t, err.Error(), f.String())
			check.Contains(t, err.Error(), f.Cure)
		}
	}
}

// checkCommand runs doctor, and verify if it must refuse the tables.
func (d variant) checkCommand(t *testing.T, c command, db *dbtest.DB, prefix string, faults []probe.Fault) {
	t.Helper()
	var findings []struct{ Severity, Subject, Text, Advice string }
	dsn := db.DSN
	if db.Name == "sqlite" {
		dsn = "sqlite:" + db.Path
	}
	args := []string{"--dsn", dsn, "--prefix", prefix}
	if d.plain {
		args = append(args, "--plain-keys")
	}
	out, _ := c.run(t, append([]string{"doctor", "--json"}, args...)...)
	must(t, json.Unmarshal([]byte(out), &findings))
	var found []probe.Fault
	for _, f := range findings {
		if f.Severity != "good" && slices.Contains([]string{"table", "fence", "names"}, f.Subject) && !strings.HasSuffix(f.Text, "(no EXPIRED_AFTER)") {
			table, text, _ := strings.Cut(f.Text, " ")
			found = append(found, probe.Fault{Table: table, Text: text, Cure: f.Advice, Bearable: f.Severity == "note"})
		}
	}
	check.Same(t, "doctor", found, faults)
	if len(faults) == 0 || d.bears {
		return // verify would contend for seconds
	}
	out, code := c.run(t, append([]string{"verify", "--for", "1s"}, args...)...)
	if code != 1 {
		t.Errorf("verify: exit code %d\n%s", code, out)
	}
	for _, f := range faults {
		check.Contains(t, out, f.String())
		check.Contains(t, out, f.Cure)
	}
}

// put executes statements one by one, on one connection.
func put(t *testing.T, db *sqlx.DB, statements string) {
	t.Helper()
	conn := check.Value(db.Connx(t.Context()))(t)
	defer func() { must(t, conn.Close()) }()
	for statement := range strings.SplitSeq(statements, "; ") {
		statement, mayFail := strings.CutPrefix(statement, "!")
		if statement == "" {
			continue
		}
		if _, err := conn.ExecContext(t.Context(), statement); err != nil && !mayFail {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// cure does what a fault advises.
func cure(t *testing.T, db *dbtest.DB, prefix, advice string) {
	t.Helper()
	advice = strings.TrimSuffix(strings.TrimPrefix(advice, "while no program uses it, "), ", while no program uses the table")
	opts := &migrations.Options{Prefix: prefix}
	if advice == "sqllock migrate goto 2 --prefix "+prefix {
		must(t, migrations.Goto(t.Context(), db.DB.DB, db.Dialect, 2, opts))
		return
	}
	statements, _, migrate := strings.Cut(advice, "sqllock migrate up --prefix "+prefix)
	put(t, db.DB, strings.TrimSuffix(statements, "; "))
	if migrate {
		must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, opts))
	}
}

// A command is the path of sqllock.
type command string

// buildCommand builds it.
func buildCommand(t *testing.T) command {
	t.Helper()
	// os/exec adds .exe on Windows, as go build does.
	dir := t.TempDir()
	args := append(append([]string{"build"}, program.BuildFlags(t)...), "-o", dir, "../../../cmd/sqllock")
	build := exec.CommandContext(t.Context(), "go", args...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return command(filepath.Join(dir, "sqllock"))
}

// run runs it, and returns its output and exit code.
func (c command) run(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), string(c), args...)
	text, err := cmd.Output()
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// A temporary table is one of a single session.
func TestFaults_TemporaryTable(t *testing.T) {
	t.Parallel()
	dbtest.Databases{server.Postgres: dbtest.Postgres, server.MySQL: dbtest.MySQL, server.OracleMySQL: dbtest.OracleMySQL, server.SQLite: dbtest.SQLite}.Each(t, func(t *testing.T, db *dbtest.DB) {
		one := db.Open(t)
		one.SetMaxOpenConns(1)
		one.MustExecContext(t.Context(), strings.Replace(newTable, "CREATE TABLE P_LOCK", "CREATE TEMPORARY TABLE INT_LOCK", 1)+", PRIMARY KEY (LOCK_KEY, REGION))")
		_, err := sqllock.NewRepository(unhurried(t), one.DB, db.Dialect, &sqllock.RepositoryOptions{DisableFencing: true})
		is(t, err, sqllock.ErrSchema)
		check.Contains(t, err.Error(), "INT_LOCK is temporary")
	})
}

// A user who may not read the catalog is not refused for that.
func TestFaults_WithoutTheCatalog(t *testing.T) {
	t.Parallel()
	db := latin1Database(t)
	must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
	for _, catalog := range []string{"pg_index", "pg_inherits", "pg_sequence"} {
		db.DB.MustExecContext(t.Context(), "REVOKE SELECT ON "+catalog+" FROM PUBLIC")
	}
	u := check.Value(url.Parse(db.DSN))(t)
	role := "few_" + strings.TrimPrefix(u.Path, "/")
	db.DB.MustExecContext(t.Context(), "CREATE ROLE "+role+" LOGIN PASSWORD 'few'")
	t.Cleanup(func() {
		db.DB.MustExecContext(context.Background(), "DROP OWNED BY "+role)
		db.DB.MustExecContext(context.Background(), "DROP ROLE "+role)
	})
	for _, statement := range documentedGrants(t, "postgres", "app") {
		db.DB.MustExecContext(t.Context(), strings.Replace(statement, "TO app", "TO "+role, 1))
	}
	u.User = url.UserPassword(role, "few")
	few := db.OpenDSN(t, "pgx", u.String())
	r := check.Value(sqllock.NewRepository(unhurried(t), few.DB, db.Dialect, nil))(t)
	once(t, obtain(t, newRegistry(t, r, &sqllock.RegistryOptions{NoRenew: true}), "k").TryLock)
}

// A user who may use nothing but the tables is refused like their owner.
func TestFaults_FewRights(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		open func(testing.TB) *dbtest.DB
		put  string
	}{
		server.Postgres:    {dbtest.Postgres, "ALTER TABLE INT_LOCK DROP CONSTRAINT INT_LOCK_PK; ALTER TABLE INT_LOCK SET UNLOGGED; ALTER SEQUENCE INT_LOCK_FENCE CACHE 50"},
		server.MySQL:       {dbtest.MySQL, "ALTER TABLE INT_LOCK DROP PRIMARY KEY, ENGINE=MyISAM; ALTER SEQUENCE INT_LOCK_FENCE CACHE 50"},
		server.OracleMySQL: {dbtest.OracleMySQL, "ALTER TABLE INT_LOCK DROP PRIMARY KEY, ENGINE=MyISAM; ALTER TABLE INT_LOCK_FENCE ENGINE=MyISAM"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := up(t, test.open)
			dsn, _ := withDocumentedGrants(t, db)
			few := db.OpenDSN(t, db.Driver, dsn)
			names := check.Value(sqltext.NamesFor(""))(t)
			see := func(pool *sqlx.DB) []probe.Fault {
				return check.Value(probe.Faults(unhurried(t), pool.DB, sqltext.Of(db.Dialect), names, true, false))(t)
			}
			check.Same(t, "faults of what was migrated", see(few), nil)
			put(t, db.DB, test.put)
			seen := see(few)
			check.Same(t, "faults", seen, see(db.DB))
			if len(seen) != 3 {
				t.Errorf("%q", seen)
			}
		})
	}
}

// Without strict mode MySQL and MariaDB cut a region that is too long, so that two regions are one.
func TestFaults_RegionsThatAreCut(t *testing.T) {
	t.Parallel()
	dbtest.Databases{server.MySQL: dbtest.MySQL, server.OracleMySQL: dbtest.OracleMySQL}.Each(t, func(t *testing.T, db *dbtest.DB) {
		must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
		put(t, db.DB, "ALTER TABLE INT_LOCK MODIFY REGION VARCHAR(5) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL")
		names := check.Value(sqltext.NamesFor(""))(t)
		for mode, wanted := range map[string]string{"'STRICT_ALL_TABLES'": "[]", "''": "[INT_LOCK has a column REGION of type varchar(5), and a session without strict mode cuts a longer region]"} {
			pool := db.OpenDSN(t, "mysql", db.With(t, map[string]string{"sql_mode": mode}))
			faults := check.Value(probe.Faults(unhurried(t), pool.DB, sqltext.Of(db.Dialect), names, false, false))(t)
			check.Equal(t, mode, fmt.Sprint(faults), wanted)
		}
	})
}
