package sqllock_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/migrations"
)

// A commitSwallower stands between a client and PostgreSQL. It lets COMMIT through and
// its answer not, nor anything that follows.
type commitSwallower struct {
	target    string
	committed chan struct{} // closed when the server has answered a COMMIT
	once      sync.Once
}

// swallowCommits returns a DSN that leads through a commitSwallower.
func swallowCommits(t *testing.T, dsn string) (through string, s *commitSwallower) {
	t.Helper()
	u, err := url.Parse(dsn)
	must(t, err)
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	s = &commitSwallower{target: u.Host, committed: make(chan struct{})}
	u.Host = listener.Addr().String()
	ctx, end := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			working.Go(func() { s.serve(ctx, client) })
		}
	})
	t.Cleanup(func() {
		end()
		must(t, listener.Close())
		working.Wait()
	})
	return u.String(), s
}

// serve passes on what comes until ctx ends or one side has gone.
func (s *commitSwallower) serve(ctx context.Context, client net.Conn) {
	server, err := new(net.Dialer).DialContext(ctx, "tcp", s.target)
	if err != nil {
		_ = client.Close()
		return
	}
	hangUp := func() {
		_ = client.Close()
		_ = server.Close()
	}
	defer context.AfterFunc(ctx, hangUp)()
	var swallowing atomic.Bool
	var answering sync.WaitGroup
	answering.Go(func() {
		defer hangUp()
		pass(server, func(answer []byte) error {
			if swallowing.Load() {
				s.once.Do(func() { close(s.committed) })
				return nil
			}
			_, err := client.Write(answer)
			return err
		})
	})
	pass(client, func(request []byte) error {
		if bytes.Contains(bytes.ToUpper(request), []byte("COMMIT\x00")) {
			swallowing.Store(true)
		}
		_, err := server.Write(request)
		return err
	})
	hangUp()
	answering.Wait()
}

// pass gives to write what is read from a connection, until either fails.
func pass(from net.Conn, write func([]byte) error) {
	for buffer := make([]byte, 1<<16); ; {
		n, err := from.Read(buffer)
		if err != nil || write(buffer[:n]) != nil {
			return
		}
	}
}

// A caller that gets an error that is no ErrDatabase does the work again. So there must be none
// after a COMMIT that may have been applied.
func TestACommitWhoseAnswerIsLostIsAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{"pgx", "postgres"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			db := dbtest.Postgres(t)
			must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
			db.DB.MustExec("CREATE TABLE WORK (N INT)")
			r, err := sqllock.NewRepository(t.Context(), db.DB.DB, db.Dialect, nil)
			must(t, err)
			registry := newRegistry(t, r, nil)
			dsn, swallower := swallowCommits(t, db.DSN)
			pool := db.OpenDSN(t, driver, dsn)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			context.AfterFunc(t.Context(), cancel)
			go func() {
				<-swallower.committed
				cancel()
			}()
			err = registry.ExecuteLockedTx(ctx, "k", pool.DB, nil, func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, "INSERT INTO WORK VALUES (1)")
				return err
			})
			if !errors.Is(err, sqllock.ErrDatabase) || !errors.Is(err, context.Canceled) {
				t.Errorf("the transaction was committed, and the error is: %v", err)
			}
			var n int
			must(t, db.DB.Get(&n, "SELECT COUNT(*) FROM WORK"))
			if n != 1 {
				t.Errorf("%d rows", n)
			}
		})
	}
}

// inCommit runs ExecuteLockedTx over a driver that does at its COMMIT what plan says.
func inCommit(ctx context.Context, s *fixture, plan func(done bool) error) error {
	s.Helper()
	return s.registry.ExecuteLockedTx(ctx, "k", s.pool.DB, nil, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO INT_LOCK_FENCE (ID) VALUES (1000)")
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Op == flaky.Commit {
				return plan(m.Done)
			}
			return nil
		})
		return err
	})
}

// pgx says no more than that the context has ended, also when the server has committed.
func TestADriverThatCutsACommitShort(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		ctx, cancel := context.WithCancel(t.Context())
		err := inCommit(ctx, s, func(done bool) error {
			if !done {
				return nil
			}
			s.connector.Follow(nil)
			cancel()
			return ctx.Err()
		})
		if !errors.Is(err, sqllock.ErrDatabase) {
			t.Errorf("the transaction was committed, and the error is: %v", err)
		}
		var n int
		must(t, s.db.DB.Get(&n, "SELECT COUNT(*) FROM INT_LOCK_FENCE WHERE ID = 1000"))
		if n != 1 {
			t.Errorf("%d rows", n)
		}
	})
}

// A refusal of the database is none: nothing was committed.
func TestACommitThatIsRefused(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]bool{"AndTheContextEnds": true, "AndTheContextLasts": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, sqllock.Serializable)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := inCommit(ctx, s, func(bool) error {
				s.connector.Follow(nil)
				if ends {
					cancel()
				}
				return busy{}
			})
			if ends && (errors.Is(err, sqllock.ErrDatabase) || !errors.Is(err, context.Canceled)) || !ends && !errors.As(err, new(busy)) {
				t.Error(err)
			}
		})
	}
}

// A context that ends before COMMIT is sent rolls the transaction back, and that is known.
func TestAContextThatEndsBeforeTheCommit(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		ctx, cancel := context.WithCancel(t.Context())
		err := s.registry.ExecuteLockedTx(ctx, "k", s.pool.DB, nil, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO INT_LOCK_FENCE (ID) VALUES (1000)")
			must(t, err)
			cancel()
			for err == nil { // until the end has come to the transaction
				_, err = tx.ExecContext(t.Context(), "SELECT 1") //nolint:contextcheck // fn's has ended
			}
			if !errors.Is(err, sql.ErrTxDone) && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			return nil
		})
		if errors.Is(err, sqllock.ErrDatabase) || !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		var n int
		must(t, s.db.DB.Get(&n, "SELECT COUNT(*) FROM INT_LOCK_FENCE WHERE ID = 1000"))
		if n != 0 {
			t.Errorf("%d rows", n)
		}
	})
}
