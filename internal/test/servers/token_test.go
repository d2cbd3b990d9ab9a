package servers_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
)

// drawFromTable makes a table the source of fencing tokens, as it is on Galera. The numbers go on where a sequence
// has stopped.
func drawFromTable(t *testing.T, db *dbtest.DB) {
	t.Helper()
	next := int64(1)
	if strings.Contains(db.Version(t), "MariaDB") {
		must(t, db.DB.Get(&next, "SELECT NEXTVAL(INT_LOCK_FENCE)"))
	}
	db.DB.MustExec("DROP TABLE INT_LOCK_FENCE")
	db.DB.MustExec(fmt.Sprintf("CREATE TABLE INT_LOCK_FENCE (ID BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY) ENGINE=InnoDB AUTO_INCREMENT = %d", next))
}

// drawFromSequence is the way back.
func drawFromSequence(t *testing.T, db *dbtest.DB) {
	t.Helper()
	result := db.DB.MustExec("INSERT INTO INT_LOCK_FENCE (ID) VALUES (NULL)")
	last := check.Value(result.LastInsertId())(t)
	db.DB.MustExec("DROP TABLE INT_LOCK_FENCE")
	db.DB.MustExec(fmt.Sprintf("CREATE SEQUENCE INT_LOCK_FENCE START WITH %d NOCACHE ENGINE=InnoDB", last+1))
}

// acquired acquires a lock, deletes its row, and returns the fencing token.
func acquired(t *testing.T, r *sqllock.Repository) (token int64, err error) {
	t.Helper()
	holder := r.NewHolder()
	got, err := r.Acquire(t.Context(), "k", holder, ttl)
	if err != nil {
		return 0, err
	}
	if !got.Acquired {
		t.Fatalf("held by %+v", got.Row)
	}
	must(t, check.ErrorOf(r.Delete(t.Context(), "k", holder)))
	return got.Token, nil
}

// What there is to draw from decides, so all processes agree. A process that opened the other source gets errors, and
// never a token that is too low.
func TestToken_SourceIsReplaced(t *testing.T) {
	t.Parallel()
	for _, isolation := range []sqllock.Isolation{sqllock.Serializable, sqllock.Autocommit} {
		t.Run(isolation.String(), func(t *testing.T) {
			t.Parallel()
			db := up(t, dbtest.MySQL)
			open := func() *sqllock.Repository {
				r := repository(t, db, &sqllock.RepositoryOptions{Isolation: isolation})
				return r
			}
			var last int64
			before := open()
			for _, replace := range []func(*testing.T, *dbtest.DB){drawFromTable, drawFromSequence, drawFromTable} {
				for range 3 {
					token := check.Value(acquired(t, before))(t)
					if token <= last {
						t.Errorf("token %d after %d", token, last)
					}
					last = token
				}
				replace(t, db)
				after := open()
				if token, err := acquired(t, before); !errors.Is(err, sqllock.ErrSchema) {
					t.Errorf("the old process: token %d, error %v", token, err)
				}
				// In Autocommit the row was written before the error.
				must(t, check.ErrorOf(after.DeleteExpired(t.Context())))
				must(t, before.ReleaseAll(t.Context()))
				before = after
			}
		})
	}
}

// Numbers that a server has cached are lost to the replica that is promoted in its place. Numbers that descend, or
// begin again, give tokens that are too low.
func TestToken_SequenceThatMightGoBackIsRefused(t *testing.T) {
	t.Parallel()
	db := up(t, dbtest.MySQL)
	for _, change := range []string{"CACHE 1000", "INCREMENT BY -1", "CYCLE"} {
		db.DB.MustExec("ALTER SEQUENCE INT_LOCK_FENCE " + change)
		_, err := sqllock.NewRepository(unhurried(t), db.DB.DB, db.Dialect, nil)
		_, opening := openMySQL(unhurried(t), db.DSN, openOptions{repository: sqllock.RepositoryOptions{Layout: dialect.Spring7}})
		for _, err := range []error{err, opening} {
			if !errors.Is(err, sqllock.ErrSchema) || !strings.Contains(err.Error(), "ALTER SEQUENCE INT_LOCK_FENCE INCREMENT BY 1 MINVALUE 1 NOMAXVALUE NOCACHE NOCYCLE") {
				t.Errorf("%s: %v", change, err)
			}
		}
		db.DB.MustExec("ALTER SEQUENCE INT_LOCK_FENCE INCREMENT BY 1 NOCACHE NOCYCLE")
		must(t, check.ErrorOf(sqllock.NewRepository(unhurried(t), db.DB.DB, db.Dialect, nil)))
	}
}

// With a given layout nothing is asked, and the dialect says what there is.
func TestToken_SequenceWithAGivenLayout(t *testing.T) {
	t.Parallel()
	db := up(t, dbtest.MySQL)
	options := &sqllock.RepositoryOptions{Layout: dialect.Spring7}
	right := check.Value(sqllock.NewRepository(unhurried(t), db.DB.DB, db.Dialect.WithSequence(), options))(t)
	if token, err := acquired(t, right); err != nil || token == 0 {
		t.Errorf("token %d, error %v", token, err)
	}
	registry := check.Value(openMySQL(unhurried(t), db.DSN, openOptions{repository: *options}))(t)
	once(t, obtain(t, registry, "k").TryLock)
	must(t, registry.Close(t.Context()))
	wrong := repository(t, db, options)
	if token, err := acquired(t, wrong); !errors.Is(err, sqllock.ErrSchema) {
		t.Errorf("token %d, error %v", token, err)
	}
	db.DB.MustExecContext(t.Context(), "DROP TABLE INT_LOCK_FENCE") // as of a table that Spring has created
	missing := check.Value(openMySQL(unhurried(t), db.DSN, openOptions{repository: *options}))(t)
	is(t, check.ErrorOf(missing.TryLock(t.Context(), "k")), sqllock.ErrSchema)
	must(t, missing.Close(t.Context()))
}

// A refused attempt draws no number, and says who is in the way.
func TestToken_RefusalDrawsNoNumber(t *testing.T) {
	t.Parallel()
	db := up(t, dbtest.MySQL)
	r := repository(t, db, nil)
	first := check.Value(r.Acquire(t.Context(), "k", "holder", ttl))(t)
	for range 3 {
		got := check.Value(r.Acquire(t.Context(), "k", "other", ttl))(t)
		if got.Acquired || got.Row.Holder != "holder" || got.Row.Left <= 0 || got.Row.Left > ttl || got.Row.Age < 0 {
			t.Errorf("%+v", got)
		}
	}
	next := check.Value(r.Acquire(t.Context(), "another", "other", ttl))(t)
	if next.Token != first.Token+tokensPerNumber {
		t.Errorf("token %d after %d", next.Token, first.Token)
	}
}

// One message, one statement in a transaction, or one statement alone; one row, or many: tokens rise, and everybody
// has a token of its own.
func TestToken_RiseOverTheWaysToAcquire(t *testing.T) {
	t.Parallel()
	db := up(t, dbtest.MySQL)
	pool := db.OpenDSN(t, db.Driver, db.With(t, map[string]string{"multiStatements": "true", "interpolateParams": "true", "tx_isolation": "'SERIALIZABLE'"}))
	ways := []sqllock.RepositoryOptions{
		{MultiStatements: true}, {}, {Acquirers: pool.DB}, {Isolation: sqllock.Autocommit}, {MultiStatements: true, Isolation: sqllock.ReadCommitted},
	}
	seen := make(map[int64]bool)
	var last int64
	for i, way := range ways {
		r := check.Value(sqllock.NewRepository(unhurried(t), pool.DB, db.Dialect, &way))(t)
		token := check.Value(acquired(t, r))(t)
		if token <= last {
			t.Errorf("way %d: token %d after %d", i, token, last)
		}
		const callers = 40
		tokens := make(chan int64, callers)
		for caller := range callers {
			go func() {
				key := fmt.Sprint(i, "/", caller/2) // two want each
				got, err := r.Acquire(t.Context(), key, r.NewHolder(), ttl)
				switch {
				case err != nil:
					t.Error(err)
				case got.Acquired != (got.Token > token) || !got.Acquired && got.Row.Holder == "":
					t.Errorf("%+v", got)
				}
				tokens <- got.Token
			}()
		}
		count := 0
		for range callers {
			if token := <-tokens; token > 0 {
				count++
				seen[token] = true
				last = max(last, token)
			}
		}
		if count != callers/2 || len(seen) != (i+1)*callers/2 {
			t.Errorf("way %d: %d acquired, %d different tokens in all", i, count, len(seen))
		}
	}
}

// tokensPerNumber is how many fencing tokens lie between two numbers of the database.
const tokensPerNumber = 65536

// Numbers that were set too high give no negative token but an error, and nothing is acquired.
func TestToken_NumbersBeyondAll(t *testing.T) {
	t.Parallel()
	const last = int64(math.MaxInt64 / tokensPerNumber)
	table := fmt.Sprintf("INSERT INTO INT_LOCK_FENCE (ID) VALUES (%d)", last-1)
	for name, test := range map[string]struct {
		open func(testing.TB) *dbtest.DB
		set  string // the next number to the last one
	}{
		"PostgreSQL, a sequence": {dbtest.Postgres, fmt.Sprintf("SELECT setval('INT_LOCK_FENCE', %d, false)", last)},
		"MariaDB, a sequence":    {dbtest.MySQL, fmt.Sprintf("ALTER SEQUENCE INT_LOCK_FENCE RESTART %d", last)},
		"MariaDB, a table":       {dbtest.MySQL, table},
		"SQLite, a table":        {dbtest.SQLite, table},
	} {
		for _, isolation := range []sqllock.Isolation{sqllock.Serializable, sqllock.Autocommit} {
			t.Run(name+", "+isolation.String(), func(t *testing.T) {
				t.Parallel()
				db := up(t, test.open)
				if name == "MariaDB, a table" {
					drawFromTable(t, db)
				}
				db.DB.MustExec(test.set)
				r := repository(t, db, &sqllock.RepositoryOptions{Isolation: isolation})
				check.Equal(t, "token", check.Value(acquired(t, r))(t), last*tokensPerNumber)
				for {
					began := time.Now()
					acquireBeyond(t, r)
					rows := check.Value(r.List(t.Context()))(t)
					if len(rows) == 0 {
						return
					}
					if time.Since(began) < time.Second { // or else the next attempt deletes them
						t.Fatalf("%d rows are left behind: %v", len(rows), rows[0])
					}
				}
			})
		}
	}
}

// acquireBeyond has many callers try at once for which there are no numbers, so that some of them are in batches.
func acquireBeyond(t *testing.T, r *sqllock.Repository) {
	t.Helper()
	var trying sync.WaitGroup
	for i := range 40 {
		trying.Go(func() {
			got, err := r.Acquire(context.Background(), fmt.Sprint(i), fmt.Sprint("holder", i), ttl)
			if got.Acquired || !errors.Is(err, sqllock.ErrDatabase) || !strings.Contains(err.Error(), "INT_LOCK_FENCE") {
				t.Error(got, err)
			}
		})
	}
	trying.Wait()
}

// The table that tokens are drawn from stays small, whatever numbers the server gives: with two primaries each of
// them gives every other one. It takes seconds: the table is trimmed after a thousand acquisitions.
func TestToken_TableIsTrimmed(t *testing.T) {
	t.Parallel()
	for name, session := range map[string]map[string]string{
		"EachNumber":       nil,
		"OddNumbers":       {"auto_increment_increment": "2", "auto_increment_offset": "1"},
		"EachSeventhPlus5": {"auto_increment_increment": "7", "auto_increment_offset": "5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := up(t, dbtest.MySQL)
			drawFromTable(t, db)
			const earlier = 3000
			db.DB.MustExec("INSERT INTO INT_LOCK_FENCE (ID) VALUES (1)" + strings.Repeat(", (NULL)", earlier-1))
			pool := db.OpenDSN(t, db.Driver, db.With(t, session))
			r := check.Value(sqllock.NewRepository(unhurried(t), pool.DB, db.Dialect, &sqllock.RepositoryOptions{Isolation: sqllock.Autocommit}))(t)
			const acquisitions = 1100
			for range acquisitions {
				got := check.Value(r.Acquire(t.Context(), "k", "holder", ttl))(t)
				if !got.Acquired {
					t.Fatal(got)
				}
			}
			// It runs in the background, and once more after as many again if the server is too slow.
			for began := time.Now(); ; must(t, check.ErrorOf(r.Acquire(t.Context(), "k", "holder", ttl))) {
				var rows int
				must(t, db.DB.Get(&rows, "SELECT COUNT(*) FROM INT_LOCK_FENCE"))
				if rows < earlier {
					break
				}
				if time.Since(began) > ttl {
					t.Fatalf("%d rows, of which %d are of this process", rows, acquisitions)
				}
			}
		})
	}
}
