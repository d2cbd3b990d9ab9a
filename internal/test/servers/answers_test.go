package servers_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/session/mysqldriver"
	"github.com/sqllock/sqllock/internal/session/pgxdriver"
	"github.com/sqllock/sqllock/internal/session/pqdriver"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/transaction"
)

// An asking sends a number in statements of one kind, which take up to a millisecond on the server, and returns the
// numbers that come back.
type asking func(ctx context.Context, p transaction.Pool, number int64) (answers []int64, err error)

// askings are the kinds of statements that sqllock sends. plain returns a number and waits for up to a millisecond,
// set and get keep one in the session, and message, unless it is "", is several statements in one message.
func askings(plain, set, get, message string) map[string]asking {
	seconds := func() float64 { return rand.Float64() / 1000 }
	one := func(row *sql.Row) ([]int64, error) {
		var answer int64
		err := row.Scan(&answer)
		return []int64{answer}, err
	}
	all := map[string]asking{
		"statement": func(ctx context.Context, p transaction.Pool, n int64) ([]int64, error) {
			return transaction.On(ctx, p, func(c *sql.Conn) ([]int64, error) { return one(c.QueryRowContext(ctx, plain, n, seconds())) })
		},
		"two statements": func(ctx context.Context, p transaction.Pool, n int64) ([]int64, error) {
			return transaction.On(ctx, p, func(c *sql.Conn) ([]int64, error) {
				if _, err := c.ExecContext(ctx, set, n); err != nil {
					return nil, err
				}
				return one(c.QueryRowContext(ctx, get))
			})
		},
		"transaction": func(ctx context.Context, p transaction.Pool, n int64) (answers []int64, err error) {
			_, err = p.Run(ctx, nil, func(tx *transaction.Tx) (err error) {
				answers, err = one(tx.QueryRowContext(ctx, plain, n, seconds()))
				return err
			})
			return answers, err
		},
	}
	if message == "" {
		return all
	}
	all["message"] = func(ctx context.Context, p transaction.Pool, n int64) (answers []int64, err error) {
		try := p.TryWhole()
		for try.Next(ctx) {
			answers, try.Err = readAll(try.Conn.QueryContext(ctx, message, n, seconds(), n))
		}
		return answers, try.Err
	}
	return all
}

// readAll reads the numbers of all results of a message.
func readAll(rows *sql.Rows, err error) (answers []int64, _ error) {
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports what is wrong
	for more := true; more; more = rows.NextResultSet() {
		for rows.Next() {
			var answer int64
			if err := rows.Scan(&answer); err != nil {
				return nil, err
			}
			answers = append(answers, answer)
		}
	}
	return answers, rows.Err()
}

// ask sends numbers from several goroutines, and has most of the calls cancelled at random moments; some are left
// behind. It returns how many answers came, and what was wrong.
func ask(ctx context.Context, p transaction.Pool, kinds map[string]asking, calls int) (answered int64, wrong []error) {
	var number, good atomic.Int64
	var mu sync.Mutex
	report := func(format string, values ...any) {
		mu.Lock()
		defer mu.Unlock()
		wrong = append(wrong, fmt.Errorf(format, values...))
	}
	var working sync.WaitGroup
	for name, send := range kinds {
		for range 2 {
			working.Go(func() {
				for range calls {
					n := number.Add(1)
					limited, cancel := context.WithTimeout(ctx, rand.N(2*time.Millisecond))
					if rand.IntN(4) == 0 {
						limited = ctx
					}
					answers, err := bounded.Do(limited, rand.N(time.Millisecond), func() ([]int64, error) { return send(limited, p, n) }, nil)
					switch {
					case err == nil:
						good.Add(1)
						for _, answer := range answers {
							if answer != n {
								report("%s: %d is the answer to %d", name, answer, n)
							}
						}
					case bounded.Ended(limited) == nil && p.Dialect.Classify(err) != sqltext.Blocked: // a request of lib/pq to cancel comes late
						report("%s: %w", name, err)
					}
					cancel()
				}
			})
		}
	}
	working.Wait()
	return good.Load(), wrong
}

// No statement reads the answer of another one, however many before it were cancelled or left behind, over the
// pools of Open and over others; and no error of a connection that was cancelled reaches a call that was not.
func TestAnswers_AreOfTheirStatements(t *testing.T) {
	t.Parallel()
	calls := 100
	if dbtest.All() {
		calls = 500
	}
	mysql := askings("SELECT ? + 0 * SLEEP(?)", "SET @number = ?", "SELECT @number", "SELECT ?; SELECT SLEEP(?) FROM DUAL WHERE FALSE; SELECT ?")
	withoutMessages := askings("SELECT ? + 0 * SLEEP(?)", "SET @number = ?", "SELECT @number", "")
	postgres := askings("SELECT CAST($1 AS BIGINT) FROM pg_sleep($2)", "SELECT set_config('sqllock.number', CAST(CAST($1 AS BIGINT) AS TEXT), false)",
		"SELECT CAST(current_setting('sqllock.number') AS BIGINT)", "")
	type database = func(testing.TB) *dbtest.DB
	own := func(driver, parameters string) func(*testing.T, *dbtest.DB) *sqlx.DB {
		return func(t *testing.T, db *dbtest.DB) *sqlx.DB {
			return limited(db.OpenDSN(t, driver, db.DSN+parameters), 4)
		}
	}
	opened := func(parse func(string) (session.Target, error)) func(*testing.T, *dbtest.DB) *sqlx.DB {
		return func(t *testing.T, db *dbtest.DB) *sqlx.DB {
			pools := check.Value(check.Value(parse(db.DSN))(t).Connect(t.Context(), session.Need{Connections: 4, Impatient: true}))(t)
			t.Cleanup(func() { _ = pools.Close() })
			return pools.DB
		}
	}
	for name, c := range map[string]struct {
		database database
		pool     func(*testing.T, *dbtest.DB) *sqlx.DB
		kinds    map[string]asking
	}{
		"Oracle MySQL":           {dbtest.OracleMySQL, own("mysql", ""), withoutMessages},
		"Oracle MySQL, messages": {dbtest.OracleMySQL, own("mysql", "&multiStatements=true&interpolateParams=true"), mysql},
		"Oracle MySQL, Open":     {dbtest.OracleMySQL, opened(mysqldriver.Parse), mysql},
		"MariaDB":                {dbtest.MySQL, own("mysql", ""), withoutMessages},
		"MariaDB, messages":      {dbtest.MySQL, own("mysql", "&multiStatements=true&interpolateParams=true"), mysql},
		"MariaDB, Open":          {dbtest.MySQL, opened(mysqldriver.Parse), mysql},
		"pgx":                    {dbtest.Postgres, own("pgx", ""), postgres},
		"pgx, Open":              {dbtest.Postgres, opened(pgxdriver.Parse), postgres},
		"lib/pq":                 {dbtest.Postgres, own("postgres", ""), postgres},
		"lib/pq, Open":           {dbtest.Postgres, opened(pqdriver.Parse), postgres},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := c.database(t)
			d := sqltext.Of(db.Dialect)
			answered, wrong := ask(t.Context(), transaction.Pool{DB: c.pool(t, db).DB, Dialect: &d}, c.kinds, calls)
			if answered == 0 {
				t.Error("all were cancelled")
			}
			if len(wrong) > 0 {
				t.Errorf("%d of %d: %v", len(wrong), answered, errors.Join(wrong[:min(len(wrong), 10)]...))
			}
		})
	}
}

// A lateConn is a connection of a driver with a fault: a statement that was cancelled leaves
// its answer to the next one.
type lateConn struct {
	driver.Conn

	left driver.Rows
}

type lateConnector struct{ driver driver.Driver }

func (c lateConnector) Driver() driver.Driver { return c.driver }

func (c lateConnector) Connect(context.Context) (driver.Conn, error) {
	inner, err := c.driver.Open(":memory:")
	return &lateConn{Conn: inner}, err
}

// QueryContext implements driver.QueryerContext.
func (c *lateConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.Conn.(driver.QueryerContext).QueryContext(context.WithoutCancel(ctx), query, args) //nolint:forcetypeassert // SQLite's driver
	if err != nil {
		return nil, err
	}
	if _, ends := ctx.Deadline(); ends && c.left == nil {
		<-ctx.Done()
		c.left = rows
		return nil, ctx.Err()
	}
	if c.left != nil {
		rows, c.left = c.left, nil
	}
	return rows, nil
}

// What [ask] looks for it finds.
func TestAnswers_OfADriverWithAFault(t *testing.T) {
	t.Parallel()
	sqlite := dbtest.SQLite(t)
	db := sql.OpenDB(lateConnector{sqlite.DB.Driver()})
	defer func() { must(t, db.Close()) }()
	d := sqltext.SQLite()
	kinds := map[string]asking{"statement": askings("SELECT ?1 + 0 * ?2", "", "", "")["statement"]}
	if _, wrong := ask(t.Context(), transaction.Pool{DB: db, Dialect: &d}, kinds, 100); len(wrong) == 0 {
		t.Error("nothing was found")
	}
}
