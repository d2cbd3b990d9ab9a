package cli

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/program"
)

// eachDatabase runs a test for every kind of database. The tests do not run in parallel: the
// state directory is an environment variable of the process.
func eachDatabase(t *testing.T, test func(t *testing.T, db *dbtest.DB)) {
	t.Helper()
	for name, create := range map[string]func(testing.TB) *dbtest.DB{
		"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres, "mysql": dbtest.MySQL,
	} {
		t.Run(name, func(t *testing.T) {
			test(t, chosen(t, create))
		})
	}
}

// chosen creates a database, which commands use that have no --dsn.
func chosen(t *testing.T, create func(testing.TB) *dbtest.DB) *dbtest.DB {
	t.Helper()
	db := create(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv(connect.DSNVariable, db.DSN)
	return db
}

// migrated is chosen with tables.
func migrated(t *testing.T, create func(testing.TB) *dbtest.DB) *dbtest.DB {
	t.Helper()
	db := chosen(t, create)
	want(t, 0, "migrate", "up")
	return db
}

// want runs a command line and returns its output. It ends the test if the exit code is not
// code.
func want(t *testing.T, code int, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	got := run(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
	if got != code {
		t.Fatalf("sqllock %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, code, &stdout, &stderr)
	}
	return stdout.String() + stderr.String()
}

// TestAllCommands uses every command on one lock, in both layouts.
func TestAllCommands(t *testing.T) {
	eachDatabase(t, func(t *testing.T, db *dbtest.DB) {
		program.Contains(t, want(t, exit.Database, "list"), "INT_LOCK", "try: sqllock migrate up")
		program.Contains(t, want(t, exit.Failure, "doctor"), "✗ table", "✗ schema", "sqllock migrate up")
		for _, layout := range []dialect.Layout{dialect.Spring6, dialect.Spring7} {
			t.Run(layout.String(), func(t *testing.T) {
				want(t, 0, "migrate", "up", "--layout", layout.String())
				for line := range strings.Lines(want(t, 0, "doctor")) {
					// The servers of the tests do not write each commit to the disk.
					if strings.HasPrefix(line, "✗") || strings.HasPrefix(line, "!") && !strings.HasPrefix(line, "! durability") {
						t.Errorf("doctor reports a problem of a new table: %s", line)
					}
				}
				useAllCommands(t, db)
			})
		}
	})
}

func useAllCommands(t *testing.T, db *dbtest.DB) {
	const ttl = "1m"
	r, err := sqllock.NewRepository(t.Context(), db.DB.DB, db.Dialect, &sqllock.RepositoryOptions{ClientID: "test"})
	check.Must(t, err)
	holder := r.NewHolder()
	if got, err := r.Acquire(t.Context(), "orders/42", holder, time.Minute); err != nil || !got.Acquired {
		t.Fatal(got, err)
	}
	program.Contains(t, want(t, 0, "show", "orders/42", "--ttl", ttl), "held", holder)
	program.Contains(t, want(t, 0, "leader", "orders/42", "--ttl", ttl), "leader     test\n", holder)
	program.Contains(t, want(t, 0, "list", "--ttl", ttl), "orders/42\t", "\theld\t"+holder)

	var rows []struct {
		Key, Holder *string
		Age         *float64 `json:"age_seconds"`
		Left        *float64 `json:"left_seconds"`
	}
	check.Must(t, json.Unmarshal([]byte(want(t, 0, "list", "--json", "--ttl", ttl)), &rows))
	if len(rows) != 1 || *rows[0].Key != "orders/42" || *rows[0].Holder != holder || *rows[0].Left < 1 || *rows[0].Left > 60 || *rows[0].Age < 0 {
		t.Errorf("rows %+v", rows)
	}
	program.Contains(t, want(t, 0, "cleanup", "--ttl", ttl), "removed 0 expired rows")
	program.Contains(t, want(t, exit.Usage, "unlock", "orders/42"), "--force")
	program.Contains(t, want(t, 0, "unlock", "--force", "orders/42", "--ttl", ttl), "removed", holder)
	program.Contains(t, want(t, 0, "show", "orders/42"), "free")
	if deleted, err := r.Delete(t.Context(), "orders/42", holder); err != nil || deleted {
		t.Errorf("the row still existed: %v, %v", deleted, err)
	}
}

// TestDoctorOnSpringsTable checks tables that Spring's own scripts create.
func TestDoctorOnSpringsTable(t *testing.T) {
	eachDatabase(t, func(t *testing.T, db *dbtest.DB) {
		dateType := map[string]string{"mysql": "DATETIME(6)"}[db.Name]
		if dateType == "" {
			dateType = "TIMESTAMP"
		}
		db.DB.MustExecContext(t.Context(), `CREATE TABLE INT_LOCK (LOCK_KEY CHAR(36) NOT NULL, REGION VARCHAR(100) NOT NULL,
CLIENT_ID CHAR(36), CREATED_DATE `+dateType+` NOT NULL, CONSTRAINT INT_LOCK_PK PRIMARY KEY (LOCK_KEY, REGION))`)
		program.Contains(t, want(t, 1, "doctor"), "✓ table        INT_LOCK, layout spring6", "✗ fence", "! schema       the table was not created by sqllock", "adopts it")
		want(t, 0, "migrate", "up")
		program.Contains(t, want(t, 0, "doctor"), "layout spring6", "✓ schema       version 2 of 3", "migrate up --layout spring7")
		want(t, 0, "migrate", "up", "--layout", "spring7")
		program.Contains(t, want(t, 0, "doctor"), "layout spring7", "✓ schema       version 3 of 3")
	})
}

// TestDoctorOnMySQL checks collations and precisions, which only MySQL has.
func TestDoctorOnMySQL(t *testing.T) {
	db := chosen(t, dbtest.MySQL)
	db.DB.MustExecContext(t.Context(), `CREATE TABLE INT_LOCK (LOCK_KEY CHAR(36) NOT NULL, REGION VARCHAR(100) NOT NULL,
CLIENT_ID CHAR(36), CREATED_DATE DATETIME(6) NOT NULL, EXPIRED_AFTER DATETIME(3) NOT NULL, PRIMARY KEY (LOCK_KEY, REGION))
CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci`)
	program.Contains(t, want(t, 1, "doctor"), // there is no source of fencing tokens
		"✓ collation    LOCK_KEY has utf8mb4_general_ci, which does not distinguish a from A: this does not",
		"! precision    EXPIRED_AFTER keeps 3 digits", "→ ALTER TABLE INT_LOCK MODIFY EXPIRED_AFTER DATETIME(6)")
	program.Contains(t, want(t, 1, "doctor", "--plain-keys"), "! collation    LOCK_KEY", "COLLATE utf8mb4_bin")

	program.Contains(t, want(t, 1, "doctor"), "✓ pool         Open sets what", "innodb_lock_wait_timeout=1", "idle_transaction_timeout")
	separator := "?"
	if strings.Contains(db.DSN, "?") {
		separator = "&"
	}
	program.Contains(t, want(t, 1, "doctor", "--dsn", db.DSN+separator+"autocommit=0"), "! pool         a pool that is opened with this DSN lacks autocommit=1")

	db.DB.MustExecContext(t.Context(), `ALTER TABLE INT_LOCK MODIFY CREATED_DATE DATETIME NOT NULL`)
	program.Contains(t, want(t, exit.Failure, "doctor"), "✗ table", "✗ precision    CREATED_DATE keeps 0 digits of a second: a lease would end")
	db.DB.MustExecContext(t.Context(), `ALTER TABLE INT_LOCK MODIFY CREATED_DATE TIMESTAMP(6) NOT NULL`)
	program.Contains(t, want(t, exit.Failure, "doctor"), "✗ table", "✗ precision    CREATED_DATE is a TIMESTAMP", "→ ALTER TABLE INT_LOCK MODIFY CREATED_DATE DATETIME(6)")
	db.DB.MustExecContext(t.Context(), `ALTER TABLE INT_LOCK MODIFY CREATED_DATE DATETIME(6) NOT NULL, CONVERT TO CHARACTER SET utf8mb3`)
	program.Contains(t, want(t, exit.Failure, "doctor", "--plain-keys"), "✗ table        no usable lock table: LOCK_KEY of INT_LOCK has the character set utf8mb3")
	program.Contains(t, want(t, exit.Failure, "doctor", "--dsn", db.DSN+separator+"charset=latin1"), "! pool         a pool that is opened with this DSN lacks charset=utf8mb4")
}

// TestDoctorOnPostgres checks what a lease needs of the types of columns.
func TestDoctorOnPostgres(t *testing.T) {
	db := migrated(t, dbtest.Postgres)
	db.DB.MustExecContext(t.Context(), `ALTER TABLE INT_LOCK ALTER EXPIRED_AFTER TYPE TIMESTAMPTZ, ALTER CREATED_DATE TYPE TIMESTAMP(0)`)
	program.Contains(t, want(t, exit.Failure, "doctor"), "✗ table", "column EXPIRED_AFTER is timestamp with time zone", "column CREATED_DATE is timestamp(0)", "while no program uses it")
	db.DB.MustExecContext(t.Context(), `ALTER TABLE INT_LOCK RENAME TO REAL_LOCK; CREATE VIEW INT_LOCK AS SELECT * FROM REAL_LOCK`)
	program.Contains(t, want(t, exit.Failure, "doctor"), "✗ table", "a view", "--prefix")
}

// TestDoctorNamesTriggers: they may drop or change what is written, and no lock shows why.
func TestDoctorNamesTriggers(t *testing.T) {
	triggers := map[string]string{
		"postgres": `CREATE FUNCTION drop_it() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER keeper BEFORE DELETE ON INT_LOCK FOR EACH ROW WHEN (OLD.REGION = 'other') EXECUTE PROCEDURE drop_it()`,
		"mysql":  "CREATE TRIGGER keeper BEFORE UPDATE ON INT_LOCK FOR EACH ROW SET NEW.CLIENT_ID = IF(NEW.REGION = 'other', 'x', NEW.CLIENT_ID)",
		"sqlite": "CREATE TRIGGER keeper BEFORE DELETE ON INT_LOCK WHEN OLD.REGION = 'other' BEGIN SELECT RAISE(IGNORE); END",
	}
	eachDatabase(t, func(t *testing.T, db *dbtest.DB) {
		want(t, 0, "migrate", "up")
		db.DB.MustExecContext(t.Context(), triggers[db.Name])
		program.Contains(t, want(t, 0, "doctor"), "! triggers     INT_LOCK has the trigger keeper", "leases are lost")
	})
}

// TestDoctorOnASequence uses a sequence of MariaDB that has been given a cache.
func TestDoctorOnASequence(t *testing.T) {
	db := migrated(t, dbtest.MySQL)
	program.Contains(t, want(t, 0, "doctor"), "✓ fence        fencing tokens come from INT_LOCK_FENCE", "✓ pool         Open sets what", "RepositoryOptions.Acquirers")
	db.DB.MustExecContext(t.Context(), "ALTER SEQUENCE INT_LOCK_FENCE CACHE 1000")
	program.Contains(t, want(t, 1, "doctor"), "✗ fence", "ALTER SEQUENCE INT_LOCK_FENCE INCREMENT BY 1 NOCACHE", "docs/schema.md has the statements")
}

// TestDoctorOnReplica uses a server that rejects writes.
func TestDoctorOnReplica(t *testing.T) {
	db := migrated(t, dbtest.Postgres)
	program.Contains(t, want(t, 0, "doctor"), "✓ pool         Open sets what", "idle_in_transaction_session_timeout", "RepositoryOptions.Acquirers")
	t.Setenv(connect.DSNVariable, db.DSN+"&default_transaction_read_only=on")
	program.Contains(t, want(t, exit.Failure, "doctor"), "✗ writes       rejected", "✗ round trip", "primary server")
	program.Contains(t, want(t, exit.Database, "unlock", "--force", "x", "--prefix", "OTHER_"), "OTHER_LOCK")
}

// TestDoctorOnPgBouncer uses a pooler of transactions, with and without what the drivers need, and one that
// refuses the settings of a session, for which the DSN needs no parameters.
func TestDoctorOnPgBouncer(t *testing.T) {
	db := migrated(t, dbtest.PgBouncer)
	program.Contains(t, want(t, 0, "doctor"), "✓ pooler       clients share the server's sessions", "✓ round trip")
	t.Setenv(connect.DSNVariable, strings.NewReplacer("&binary_parameters=yes", "", "&default_query_exec_mode=exec", "").Replace(db.DSN))
	program.Contains(t, want(t, 0, "doctor"), "! pooler       clients share the server's sessions", "→ give pgx default_query_exec_mode=exec")
	bare, _, _ := strings.Cut(db.DSN, "?")
	t.Setenv(connect.DSNVariable, bare+"?sslmode=disable")
	want(t, 0, "migrate", "goto", "0")
	want(t, 0, "migrate", "up")
	program.Contains(t, want(t, 0, "doctor"), "! session      something in front of the server", "→ pgxlock.Open and pqlock.Open fall back here", "✓ round trip")
}

// TestDoctorOnHosts uses a DSN with two hosts, the first of which is down.
func TestDoctorOnHosts(t *testing.T) {
	db := migrated(t, dbtest.Postgres)
	u, err := url.Parse(db.DSN)
	check.Must(t, err)
	u.Host = u.Hostname() + ":1," + u.Host
	t.Setenv(connect.DSNVariable, u.String())
	program.Contains(t, want(t, 0, "doctor"), "! hosts        the DSN has 2", "→ add target_session_attrs=primary")
	t.Setenv(connect.DSNVariable, u.String()+"&target_session_attrs=read-write")
	program.Contains(t, want(t, 0, "doctor", "--json"), `"subject": "hosts"`, "2, and target_session_attrs chooses one")
}

// TestPostgresWithoutTLS uses a server that has none: it is asked for, unless the DSN requires it.
func TestPostgresWithoutTLS(t *testing.T) {
	db := dbtest.Postgres(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	if !strings.Contains(db.DSN, "sslmode=disable") {
		t.Skip("the server may have TLS")
	}
	t.Setenv(connect.DSNVariable, strings.Replace(db.DSN, "sslmode=disable", "channel_binding=prefer", 1))
	want(t, 0, "migrate", "up")
	t.Setenv(connect.DSNVariable, strings.Replace(db.DSN, "sslmode=disable", "sslmode=require", 1))
	program.Contains(t, want(t, exit.Database, "list"), "server refused TLS", "try: sslmode=prefer or sslmode=disable")
	program.Contains(t, want(t, exit.Failure, "doctor"), "✗ connection", "→ sslmode=prefer or sslmode=disable")
}

// TestDoctorWithTheRightsToLock uses a user who may do what docs/schema.md says, and no more. The catalog of
// MySQL and MariaDB shows such a user no other table.
func TestDoctorWithTheRightsToLock(t *testing.T) {
	for name, open := range map[string]func(testing.TB) *dbtest.DB{"MariaDB": dbtest.MySQL, "MySQL": dbtest.OracleMySQL} {
		t.Run(name, func(t *testing.T) {
			db := migrated(t, open)
			config, err := mysql.ParseDSN(db.DSN)
			check.Must(t, err)
			config.User, config.Passwd = config.DBName[:min(22, len(config.DBName))]+"_app", "few" // a user of MySQL has 32 characters
			user := "'" + config.User + "'@'%'"
			db.DB.MustExecContext(t.Context(), "CREATE USER "+user+" IDENTIFIED BY 'few'")
			t.Cleanup(func() { db.DB.MustExec("DROP USER " + user) })
			for _, table := range []string{"INT_LOCK", "INT_LOCK_FENCE"} {
				db.DB.MustExecContext(t.Context(), "GRANT SELECT, INSERT, UPDATE, DELETE ON "+table+" TO "+user)
			}
			t.Setenv(connect.DSNVariable, config.FormatDSN())
			program.Contains(t, want(t, 0, "doctor"), "✓ round trip", "! schema       version not known: ", "INT_LOCK_MIGRATIONS", "→ let the user SELECT from that table")
			db.DB.MustExecContext(t.Context(), "GRANT SELECT ON INT_LOCK_MIGRATIONS TO "+user)
			program.Contains(t, want(t, 0, "doctor"), "✓ schema       version 3 of 3")
		})
	}
}

// TestDoctorWithFewRights uses a user who may only read locks: SET ROLE in the DSN takes the
// rights of the superuser away.
func TestDoctorWithFewRights(t *testing.T) {
	db := migrated(t, dbtest.Postgres)
	db.DB.MustExecContext(t.Context(), `DO $$ BEGIN EXECUTE 'GRANT USAGE ON SCHEMA ' || current_schema() || ' TO pg_monitor'; END $$`)
	reader := db.DSN + "&role=pg_monitor"
	program.Contains(t, want(t, exit.Failure, "doctor", "--dsn", reader), "✗ table", "→ check that the user may SELECT")
	db.DB.MustExecContext(t.Context(), `GRANT SELECT ON INT_LOCK TO pg_monitor`)
	t.Setenv(connect.DSNVariable, reader)
	program.Contains(t, want(t, exit.Failure, "doctor"), "! schema       version not known", "✗ round trip", "may SELECT, INSERT, UPDATE and DELETE in INT_LOCK")
	program.Contains(t, want(t, 0, "show", "orders/42"), "free")
	program.Contains(t, want(t, exit.Database, "cleanup"), "permission denied")
}
