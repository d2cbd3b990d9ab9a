package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/report"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/internal/test/virtualsqlite"
	"github.com/sqllock/sqllock/observe"
)

// A sessions opens the sessions in which callers wait for turns, or refuses to.
type sessions struct {
	driver.Connector
	open  atomic.Bool
	asked atomic.Int64
}

func (s *sessions) Connect(ctx context.Context) (driver.Conn, error) {
	s.asked.Add(1)
	if !s.open.Load() {
		return nil, errors.New("no session is free")
	}
	return s.Connector.Connect(ctx)
}

// TestOutOfTurn_PollsOnly has a caller wait for a row that is held, while there are no sessions for turns: it sends no
// attempt, asks for a turn less and less often, and has one when there is a session again.
func TestOutOfTurn_PollsOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "test.db")
		check.Must(t, os.WriteFile(path, virtualsqlite.Template(t, dialect.Spring7), 0o600))
		db := check.Value(sql.Open(virtualsqlite.Name, virtualsqlite.DSN(path)))(t)
		defer func() { _ = db.Close() }()
		turns := &sessions{Connector: flaky.New(virtualsqlite.Driver{}, virtualsqlite.DSN(path))}
		queue := sql.OpenDB(turns)
		defer func() { _ = queue.Close() }()
		table := check.Value(locktable.Open(t.Context(), locktable.Config{
			DB: db, Dialect: sqltext.SQLite(), Names: check.Value(sqltext.NamesFor(dialect.DefaultPrefix))(t), Region: "DEFAULT", Turns: queue,
		}))(t)
		s := New(table, nil, nil, "", nil, nil, Settings{IdleBetweenTries: 100 * time.Millisecond, CacheCapacity: 1})
		held := locktable.Claim{LockKey: "k", Holder: table.IDs.Next(), TTL: time.Hour}
		check.Equal(t, "the row is acquired", check.Value(table.Acquisitions.Acquire(t.Context(), held))(t).Acquired, true)
		ctx, cancel := context.WithCancel(t.Context())
		h := newHold(s, Request{ttl: time.Hour, fair: true}.withKey("k", "k"))
		h.observed = report.Observers(nil).Begin(t.Context(), observe.AcquireStart{})
		check.Must(t, s.addWaiter(h, func(error) { cancel() }))
		w := waiter{locks: s, hold: h, ticket: ticket{unordered: true}}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = w.acquire(ctx)
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		const tries = 3 // for each turn
		if n := turns.asked.Load() / tries; n < 3 || n > 5 {
			t.Errorf("it has asked for a turn %d times", n)
		}
		turns.open.Store(true)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		check.Equal(t, "it has its turn", w.ticket.turn != nil, true)
		cancel()
		<-done
		check.Equal(t, "attempts in three minutes", h.observed.Answer(nil).Attempts, 1) // the first
		s.calls.Done()
	})
}
