package servers_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// A dialect that is not the database's is refused, with the names of both, whether or not the table is there.
func TestTable_WrongDialectIsRefused(t *testing.T) {
	t.Parallel()
	databases{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres, "mysql": dbtest.MySQL, "oracle": dbtest.OracleMySQL}.migrated(t, func(t *testing.T, db *dbtest.DB) {
		pools := map[string]*sqlx.DB{db.Driver: db.DB}
		if db.Name == "postgres" {
			pools["pgx"] = db.OpenDSN(t, "pgx", db.DSN)
		}
		for driver, pool := range pools {
			for _, d := range []dialect.Dialect{dialect.Postgres(), dialect.MySQL(), dialect.SQLite()} {
				for _, prefix := range []string{"", "NONE_"} {
					_, err := sqllock.NewRepository(unhurried(t), pool.DB, d, &sqllock.RepositoryOptions{Prefix: prefix})
					if d.String() != db.Name {
						isWrongDialect(t, err, d.String(), db.Name)
					} else if prefix == "" && err != nil || prefix != "" && !errors.Is(err, sqllock.ErrSchema) {
						t.Errorf("%s, %s, %q: %v", driver, d.String(), prefix, err)
					}
				}
			}
		}
	})
}

func isWrongDialect(t *testing.T, err error, given, needed string) {
	t.Helper()
	if !errors.Is(err, sqllock.ErrInvalid) || !strings.Contains(err.Error(), "dialect is "+given) || !strings.Contains(err.Error(), "dialect "+needed) {
		t.Errorf("%s for %s: %v", given, needed, err)
	}
}

func TestTable_MissingIsNamed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		_, err := sqllock.NewRepository(unhurried(t), db.DB.DB, db.Dialect, &sqllock.RepositoryOptions{Prefix: "NONE_"})
		if !errors.Is(err, sqllock.ErrSchema) || !errors.Is(err, sqllock.ErrDatabase) ||
			!strings.Contains(err.Error(), "NONE_LOCK") || !strings.Contains(err.Error(), "`sqllock migrate up --prefix NONE_`") {
			t.Fatal(err)
		}
	})
}

func TestTable_WrongIsNamed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		must(t, check.ErrorOf(db.DB.ExecContext(t.Context(), "CREATE TABLE INT_LOCK (LOCK_KEY CHAR(36), REGION VARCHAR(100), CLIENT_ID CHAR(36), PRIMARY KEY (LOCK_KEY, REGION))")))
		_, err := sqllock.NewRepository(unhurried(t), db.DB.DB, db.Dialect, nil)
		if !errors.Is(err, sqllock.ErrSchema) || !strings.Contains(err.Error(), "CREATED_DATE") {
			t.Fatal(err)
		}
	})
}

// Oracle's MySQL has a statement wait for a pinned row for 50 s. So each attempt reads the row before, also if the
// layout was given and the server has not been asked what it is.
func TestTable_PinnedRowWithALayoutGiven(t *testing.T) {
	t.Parallel()
	db := up(t, dbtest.OracleMySQL)
	given := &sqllock.RepositoryOptions{Layout: dialect.Spring7}
	holder := repository(t, db, given)
	lease := check.Value(obtain(t, newRegistry(t, holder, &sqllock.RegistryOptions{TTL: ttl, NoRenew: true}), "k").Lock(t.Context()))(t)
	tx := check.Value(db.DB.BeginTxx(t.Context(), nil))(t)
	must(t, lease.Guard(t.Context(), tx))

	// It gives up before the server does, which would seem to be the same.
	rival := check.Value(sqllock.NewRepository(dbcall.WithTestPatience(t.Context(), 30*time.Second), db.DB.DB, db.Dialect, given))(t)
	_, err := obtain(t, newRegistry(t, rival, &sqllock.RegistryOptions{NoRenew: true}), "k").TryLock(t.Context())
	var heldBy *sqllock.HeldError
	if !errors.As(err, &heldBy) || heldBy.Holder != lease.Holder() {
		t.Error(err)
	}
	must(t, tx.Commit())
	must(t, lease.Unlock(t.Context()))
}

// Each server of TiDB has numbers of its own, unless the table says otherwise.
func TestTable_OnTiDB(t *testing.T) {
	t.Parallel()
	db := up(t, dbtest.TiDB)
	d := dialect.TiDB()
	must(t, check.ErrorOf(sqllock.NewRepository(unhurried(t), db.DB.DB, d, nil)))
	db.DB.MustExecContext(t.Context(), "DROP TABLE INT_LOCK_FENCE")
	db.DB.MustExecContext(t.Context(), "CREATE TABLE INT_LOCK_FENCE (ID BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY)")
	_, err := sqllock.NewRepository(unhurried(t), db.DB.DB, d, nil)
	is(t, err, sqllock.ErrSchema)
	check.Contains(t, err.Error(), "AUTO_ID_CACHE 1")
	_, err = sqllock.NewRepository(unhurried(t), db.DB.DB, dialect.MySQL(), nil)
	is(t, err, sqllock.ErrInvalid)
	check.Contains(t, err.Error(), "tidb://")
	optimistic := db.OpenDSN(t, "mysql", db.With(t, map[string]string{"tidb_txn_mode": "'optimistic'"}))
	_, err = sqllock.NewRepository(unhurried(t), optimistic.DB, d, &sqllock.RepositoryOptions{DisableFencing: true})
	is(t, err, sqllock.ErrInvalid)
	check.Contains(t, err.Error(), "tidb_txn_mode=optimistic")
}

// In a partitioned table a ctid says which row only together with the partition. Rows of two regions that were
// inserted in one order have the same ones. It takes seconds beside other tests, because it makes hundreds of
// statements.
func TestTable_Partitioned(t *testing.T) {
	t.Parallel()
	db := dbtest.Postgres(t)
	for _, statement := range []string{
		`CREATE TABLE P_LOCK (LOCK_KEY CHAR(36), REGION VARCHAR(100), CLIENT_ID CHAR(36), CREATED_DATE TIMESTAMP NOT NULL,
			EXPIRED_AFTER TIMESTAMP NOT NULL, PRIMARY KEY (LOCK_KEY, REGION)) PARTITION BY LIST (REGION)`,
		`CREATE TABLE P_LOCK_A PARTITION OF P_LOCK FOR VALUES IN ('A')`,
		`CREATE TABLE P_LOCK_B PARTITION OF P_LOCK FOR VALUES IN ('B')`,
		`CREATE SEQUENCE P_LOCK_FENCE`,
	} {
		db.DB.MustExec(statement)
	}
	const keys = 40
	repositories, holders := make(map[string]*sqllock.Repository), make(map[string][]string)
	for _, region := range []string{"A", "B"} {
		r := check.Value(sqllock.NewRepository(unhurried(t), db.DB.DB, dialect.Postgres(), &sqllock.RepositoryOptions{Prefix: "P_", Region: region}))(t)
		repositories[region] = r
		for i := range keys {
			holder := r.NewHolder()
			got := check.Value(r.Acquire(t.Context(), fmt.Sprint(i), holder, ttl))(t)
			if !got.Acquired {
				t.Fatal(got)
			}
			holders[region] = append(holders[region], holder)
		}
	}
	var working sync.WaitGroup
	for i := range keys {
		working.Go(func() {
			deleted, err := repositories["A"].Delete(context.Background(), fmt.Sprint(i), holders["A"][i])
			if err != nil || !deleted {
				t.Errorf("A, %d: %v, %v", i, deleted, err)
			}
		})
	}
	working.Wait()
	for i := range keys {
		held := check.Value(repositories["B"].IsAcquired(t.Context(), fmt.Sprint(i), holders["B"][i]))(t)
		if !held {
			t.Errorf("B, %d: its row has gone", i)
		}
	}
}

// A schema that must be quoted cannot be used, and the error says why.
func TestTable_SchemaThatMustBeQuoted(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		for _, prefix := range []string{"order.INT_", "Mixed.INT_"} {
			_, err := sqllock.NewRepository(unhurried(t), db.DB.DB, db.Dialect, &sqllock.RepositoryOptions{Prefix: prefix})
			if !errors.Is(err, sqllock.ErrDatabase) || !strings.Contains(err.Error(), "without quotes") {
				t.Errorf("%s: %v", prefix, err)
			}
		}
	})
}

// A key that the server refuses is an error of its own caller, and of no other whose key is in the same batch.
func TestTable_KeyThatTheServerRefuses(t *testing.T) {
	t.Parallel()
	const constraint = "ALTER TABLE INT_LOCK ADD CHECK (LOCK_KEY <> 'bad')"
	policy := []string{"ALTER TABLE INT_LOCK ENABLE ROW LEVEL SECURITY", "CREATE POLICY sees ON INT_LOCK USING (true) WITH CHECK (LOCK_KEY <> 'bad')"}
	for _, test := range []struct {
		opener, by string
		statements []string
	}{
		{"sqlitelock", "a trigger", []string{"CREATE TRIGGER refuse BEFORE INSERT ON INT_LOCK WHEN NEW.LOCK_KEY = 'bad' BEGIN SELECT RAISE(ABORT, 'bad'); END"}},
		{"pgxlock", "a constraint", []string{constraint}},
		{"pgxlock", "a policy", policy},
		{"pqlock", "a policy", policy},
		{"pqlock", "a trigger", []string{
			"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''bad''; END'",
			"CREATE TRIGGER refuse BEFORE INSERT ON INT_LOCK FOR EACH ROW WHEN (NEW.LOCK_KEY = 'bad') EXECUTE PROCEDURE refuse()",
		}},
		{"mysqllock", "a constraint", []string{constraint}},
		{"mysqllock, Oracle's server", "a constraint", []string{constraint}},
	} {
		t.Run(test.opener+", "+test.by, func(t *testing.T) {
			t.Parallel()
			o := byName(t, test.opener)
			db := o.database(t)
			dsn := db.DSN
			must(t, o.opened(t, dsn, openOptions{migrate: migrations.Up}).Close(t.Context()))
			if test.by == "a policy" { // a superuser has none
				dsn, _ = withDocumentedGrants(t, db)
			}
			for _, statement := range test.statements {
				db.DB.MustExecContext(t.Context(), statement)
			}
			r := o.opened(t, dsn, openOptions{repository: sqllock.RepositoryOptions{Keys: sqllock.PlainKeys}, registry: sqllock.RegistryOptions{TTL: ttl}})
			for range 3 {
				lockBeside(t, r, "bad")
			}
		})
	}
}

// lockBeside locks and unlocks many keys at once. Only bad may fail.
func lockBeside(t *testing.T, r *sqllock.Registry, bad string) {
	t.Helper()
	var callers sync.WaitGroup
	for i := range 40 {
		key := fmt.Sprint("k", i)
		if i == 20 {
			key = bad
		}
		callers.Go(func() {
			lease, err := r.TryLock(t.Context(), key)
			switch {
			case key == bad:
				if !errors.Is(err, sqllock.ErrDatabase) {
					t.Errorf("%s: %v", key, err)
				}
			case err != nil:
				t.Error(err)
			default:
				check.Is(t, lease.Unlock(t.Context()), nil)
			}
		})
	}
	callers.Wait()
}

// Keys of a joint lock that the collation takes for one can never be acquired together.
func TestTable_JointKeysThatAreOneRow(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		open      func(testing.TB) *dbtest.DB
		prepare   []string
		collation string
	}{
		"MariaDB": {open: dbtest.MySQL, prepare: []string{"ALTER TABLE INT_LOCK CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"}, collation: "utf8mb4_general_ci"},
		"MySQL":   {open: dbtest.OracleMySQL, prepare: []string{"ALTER TABLE INT_LOCK CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci"}, collation: "utf8mb4_0900_ai_ci"},
		"PostgreSQL": {open: dbtest.Postgres, prepare: []string{
			"CREATE COLLATION without_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
			"ALTER TABLE INT_LOCK ALTER LOCK_KEY TYPE CHAR(36) COLLATE without_case",
		}, collation: "without_case"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := up(t, test.open)
			for _, statement := range test.prepare {
				db.DB.MustExecContext(t.Context(), statement)
			}
			for _, isolation := range []sqllock.Isolation{sqllock.Serializable, sqllock.Autocommit} {
				r := repository(t, db, &sqllock.RepositoryOptions{Keys: sqllock.PlainKeys, Isolation: isolation})
				registry := newRegistry(t, r, &sqllock.RegistryOptions{TTL: ttl, NoRenew: true})
				joint := check.Value(registry.ObtainAll("job", "JOB", "other"))(t)
				other := check.Value(registry.TryLock(t.Context(), "other"))(t)
				_, err := joint.TryLock(t.Context())
				if !errors.Is(err, sqllock.ErrNotAcquired) && db.Name != "postgres" {
					t.Errorf("while another holds one of the keys: %v", err)
				}
				must(t, other.Unlock(t.Context()))
				if _, err := joint.Lock(t.Context()); !errors.Is(err, sqllock.ErrInvalid) || !strings.Contains(err.Error(), test.collation) {
					t.Error(err)
				}
				rows := check.Value(r.List(t.Context()))(t)
				check.Same(t, "rows", rows, nil)
				// In a batch of several callers the second of the two waits for the first.
				lockBesideEqual(t, registry)
			}
		})
	}
}

// lockBesideEqual has callers of two keys that are one row meet in batches with others.
func lockBesideEqual(t *testing.T, r *sqllock.Registry) {
	t.Helper()
	var callers sync.WaitGroup
	for _, key := range []string{"a", "b", "job", "c", "JOB", "d", "Job", "e"} {
		callers.Go(func() {
			if err := r.ExecuteLocked(t.Context(), key, func(ctx context.Context) error { return ctx.Err() }); err != nil {
				t.Errorf("%s: %v", key, err)
			}
		})
	}
	callers.Wait()
}

// driversOf returns a pool of each driver.
func driversOf(t *testing.T, db *dbtest.DB, dsn string) map[string]*sqlx.DB {
	t.Helper()
	pools := map[string]*sqlx.DB{db.Driver: db.OpenDSN(t, db.Driver, dsn)}
	if db.Name == "postgres" {
		pools["pgx"] = db.OpenDSN(t, "pgx", dsn)
	}
	return pools
}

// Rows of other programs, with instants that the database cannot compute with, hide no others. MySQL takes a zero
// date for expired.
func TestTable_InstantsOfOthers(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
		r := repository(t, db, &sqllock.RepositoryOptions{Keys: sqllock.PlainKeys})
		never := map[string]string{"sqlite": "'never'", "postgres": "'infinity'", "mysql": "CAST('0000-00-00' AS DATETIME)"}[db.Name]
		mode := ""
		if db.Name == "mysql" {
			mode = "SET STATEMENT sql_mode='' FOR "
		}
		db.DB.MustExecContext(t.Context(), mode+"INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER) VALUES ('never', 'DEFAULT', 'h', "+never+", "+never+")")
		must(t, check.ErrorOf(r.Acquire(t.Context(), "k", r.NewHolder(), ttl)))
		if got, err := r.Acquire(t.Context(), "never", r.NewHolder(), ttl); err != nil || got.Acquired != (db.Name == "mysql") {
			t.Errorf("%+v, %v", got, err)
		}
		rows := check.Value(r.List(t.Context()))(t)
		if len(rows) != 2 || rows[0].Expired() || rows[1].Expired() {
			t.Errorf("%+v", rows)
		}
		must(t, r.ReleaseAll(t.Context()))
	})
}

// A driver that sends no fractions of seconds may have cut up to a second from the times of a row:
// MySQL's for Java does so on each MariaDB that greets its clients as 5.5.5. A row without a fraction is
// held for a second longer, by every statement.
func TestTable_TimesWithoutFractions(t *testing.T) {
	t.Parallel()
	for _, layout := range []dialect.Layout{dialect.Spring6, dialect.Spring7} {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			mysqls.each(t, func(t *testing.T, db *dbtest.DB) {
				must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, &migrations.Options{Layout: layout}))
				options := &sqllock.RepositoryOptions{Keys: sqllock.PlainKeys, TTL: ttl}
				r := repository(t, db, options)
				both := check.Value(newRegistry(t, r, &sqllock.RegistryOptions{TTL: ttl, NoRenew: true}).ObtainAll("joint", "other"))(t)
				other := *options
				other.Region = "other"
				swept := repository(t, db, &other)
				for name, take := range map[string]func() (taken bool){
					"one": func() bool { return check.Value(r.Acquire(t.Context(), "one", r.NewHolder(), ttl))(t).Acquired },
					"joint": func() bool {
						_, err := both.TryLock(t.Context())
						if !errors.Is(err, sqllock.ErrNotAcquired) {
							must(t, err)
						}
						return err == nil
					},
					"swept":  func() bool { return check.Value(swept.DeleteExpired(t.Context()))(t) > 0 },
					"peeked": func() bool { row, _, err := r.Peek(t.Context(), "peeked"); must(t, err); return row.Expired() },
				} {
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						takenASecondLate(t, db, layout, name, take)
					})
				}
			})
		})
	}
}

// takenASecondLate writes a row whose lease ends soon, in a whole second, and calls take until the row is taken.
func takenASecondLate(t *testing.T, db *dbtest.DB, layout dialect.Layout, key string, take func() bool) {
	t.Helper()
	end := check.Value(scalar[string](t, db, "SELECT CAST(UTC_TIMESTAMP() + INTERVAL 1 SECOND AS CHAR)"))(t)
	columns, values := "CREATED_DATE, EXPIRED_AFTER", "'2026-01-01', '"+end+"'"
	if layout == dialect.Spring6 {
		columns, values = "CREATED_DATE", fmt.Sprintf("'%s' - INTERVAL %d SECOND", end, int(ttl.Seconds()))
	}
	region := "DEFAULT"
	if key == "swept" {
		region = "other"
	}
	must(t, check.ErrorOf(db.DB.ExecContext(t.Context(), "INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, "+columns+") VALUES ('"+key+"', '"+region+"', 'java', "+values+")")))
	for !take() { //nolint:revive // it takes two seconds at most
	}
	late := check.Value(scalar[float64](t, db, "SELECT TIMESTAMPDIFF(MICROSECOND, '"+end+"', UTC_TIMESTAMP(6)) / 1e6"))(t)
	if late < 1 {
		t.Errorf("taken %v s after the end that the row has", late)
	}
}

func scalar[T any](t *testing.T, db *dbtest.DB, query string) (value T, err error) {
	t.Helper()
	err = db.DB.GetContext(t.Context(), &value, query)
	return value, err
}

// Programs whose search paths begin with different schemas would draw the tokens of one lock table from several sources.
func TestTable_FenceOfAnotherSchema(t *testing.T) {
	t.Parallel()
	db := up(t, dbtest.Postgres)
	own := check.Value(url.Parse(db.DSN))(t).Query().Get("search_path")
	other := "s_" + strings.ToLower(rand.Text())
	db.DB.MustExecContext(t.Context(), "CREATE SCHEMA "+other)
	t.Cleanup(func() { db.DB.MustExecContext(context.Background(), "DROP SCHEMA "+other+" CASCADE") })
	both := db.OpenDSN(t, db.Driver, db.With(t, map[string]string{"search_path": own + "," + other}))
	open := func(disabled bool) error {
		return check.ErrorOf(sqllock.NewRepository(unhurried(t), both.DB, db.Dialect, &sqllock.RepositoryOptions{DisableFencing: disabled}))
	}
	must(t, open(false))
	db.DB.MustExecContext(t.Context(), "ALTER SEQUENCE INT_LOCK_FENCE SET SCHEMA "+other)
	err := open(false)
	is(t, err, sqllock.ErrSchema)
	check.Contains(t, err.Error(), "INT_LOCK_FENCE is in the schema "+other+", and INT_LOCK in "+own, "sqllock migrate up --prefix "+own+".INT_")
	must(t, open(true))

	db.DB.MustExecContext(t.Context(), "SELECT setval('"+other+".INT_LOCK_FENCE', 1000)")
	runAdvice(t, db, err, "CREATE SEQUENCE")
	must(t, open(false))
	wantAbove(t, db, both, 1000)
	// A fence of the right schema that another one hides goes on, too.
	db.DB.MustExecContext(t.Context(), "SELECT setval('INT_LOCK_FENCE', 2000)")
	hidden := db.OpenDSN(t, db.Driver, db.With(t, map[string]string{"search_path": other + "," + own}))
	runAdvice(t, db, check.ErrorOf(sqllock.NewRepository(unhurried(t), hidden.DB, db.Dialect, nil)), "CREATE SEQUENCE")
	wantAbove(t, db, both, 2000)
}

func TestTable_FenceOfAnAttachedFile(t *testing.T) {
	t.Parallel()
	db := up(t, dbtest.SQLite)
	db.DB.SetMaxOpenConns(1) // a file is attached to a connection
	db.DB.MustExecContext(t.Context(), "ATTACH '"+filepath.Join(t.TempDir(), "other.db")+"' AS other")
	db.DB.MustExecContext(t.Context(), "CREATE TABLE other.INT_LOCK_FENCE (ID INTEGER PRIMARY KEY AUTOINCREMENT)")
	must(t, check.ErrorOf(sqllock.NewRepository(unhurried(t), db.DB.DB, db.Dialect, nil)))
	db.DB.MustExecContext(t.Context(), "DROP TABLE main.INT_LOCK_FENCE")
	err := check.ErrorOf(sqllock.NewRepository(unhurried(t), db.DB.DB, db.Dialect, nil))
	is(t, err, sqllock.ErrSchema)
	check.Contains(t, err.Error(), "INT_LOCK_FENCE is in the schema other, and INT_LOCK in main")

	db.DB.MustExecContext(t.Context(), "INSERT INTO other.INT_LOCK_FENCE VALUES (1000)")
	runAdvice(t, db, err, "CREATE TABLE")
	wantAbove(t, db, db.DB, 1000)
}

// runAdvice runs the statements that an error advises, from the first one to the words after them.
func runAdvice(t *testing.T, db *dbtest.DB, err error, first string) {
	t.Helper()
	_, text, found := strings.Cut(err.Error(), ": "+first)
	text, _, ends := strings.Cut(first+text, "; then ")
	if !found || !ends {
		t.Fatalf("no statements in %v", err)
	}
	for statement := range strings.SplitSeq(text, "; ") {
		db.DB.MustExecContext(t.Context(), statement)
	}
}

// wantAbove checks that a repository draws a token above all that were given out.
func wantAbove(t *testing.T, db *dbtest.DB, pool *sqlx.DB, last int64) {
	t.Helper()
	registry := newRegistry(t, check.Value(sqllock.NewRepository(unhurried(t), pool.DB, db.Dialect, nil))(t), nil)
	lease := check.Value(obtain(t, registry, "k").TryLock(t.Context()))(t)
	if lease.Token() <= last {
		t.Errorf("the token %d comes after %d", lease.Token(), last)
	}
	must(t, lease.Unlock(t.Context()))
}
