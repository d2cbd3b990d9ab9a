package registry_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/runs"
	"github.com/sqllock/sqllock/internal/test/check"
	shared "github.com/sqllock/sqllock/internal/test/fixture"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/sync/job"
)

// countExecs returns how many times the fixture's pool executes a statement without an answer of rows while do runs. Those
// about names are.
func (s *fixture) countExecs(do func()) int {
	s.Helper()
	return s.count(flaky.Exec, do)
}

// countQueries returns how many statements with an answer of rows do executes.
func (s *fixture) countQueries(do func()) int {
	s.Helper()
	return s.count(flaky.Query, do)
}

func (s *fixture) count(op flaky.Op, do func()) int {
	var n atomic.Int64
	s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
		if m.Op == op && !m.Done {
			n.Add(1)
		}
		return nil
	})
	do()
	s.connector.Follow(nil)
	return int(n.Load())
}

// namedKeys returns how many keys have a name.
func (s *fixture) namedKeys() (n int) {
	s.Helper()
	must(s.T, s.db.DB.GetContext(s.Context(), &n, "SELECT COUNT(*) FROM INT_LOCK_NAME WHERE ID LIKE 'key:%'"))
	return n
}

// A process writes a hundred names at a time, about one statement a second, and each name once in an hour. The first
// caller is named earlier: those that come within the same second are not known to have the lock for as long.
func TestNames_BoundedRate(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		registry := shared.NewRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: 3 * time.Hour, NoRenew: true})
		for i := range 250 {
			must(t, check.ErrorOf(registry.TryLock(t.Context(), fmt.Sprint("k", i))))
		}
		for i, want := range []int{0, 1, 101, 201, 250, 250} {
			check.Equal(t, fmt.Sprintf("names after %d s", i), s.namedKeys(), want)
			time.Sleep(time.Second + 10*time.Millisecond) // and a bit for each lock
		}
		if n := s.countExecs(func() { time.Sleep(50 * time.Minute) }); n > 1 { // old ones are deleted once
			t.Errorf("%d statements while all is named", n)
		}
		if n := s.countExecs(func() { time.Sleep(20 * time.Minute) }); n < 4 || n > 5 {
			t.Errorf("%d statements in the next hour, want 4, and one for old names", n)
		}
		must(t, registry.Close(t.Context()))
		check.Equal(t, "statements after Close", s.countExecs(func() { time.Sleep(2 * time.Hour) }), 0)
	})
}

// A lock that was held for a moment, and whose row stays for its minimum hold, has a name: a nightly job is one.
func TestNames_OfAMinimumHold(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		registry := shared.NewRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: time.Hour, Application: "orders", NoRenew: true})
		for _, pass := range []struct {
			key        string
			minHold    time.Duration
			statements int
		}{{"nightly", time.Minute, 2}, {"nightly", time.Minute, 1}, {"brief", 500 * time.Millisecond, 1}} {
			lease := check.Value(obtain(t, registry, pass.key).WithMinHold(pass.minHold).TryLock(t.Context()))(t)
			if n := s.countExecs(func() { must(t, lease.Unlock(t.Context())) }); n != pass.statements {
				t.Errorf("%s: Unlock executed %d statements, want %d", pass.key, n, pass.statements)
			}
			rows := check.Value(s.another(sqllock.Autocommit).repository.List(t.Context()))(t)
			if want := map[string]string{"nightly": "nightly"}[pass.key]; len(rows) != 1 || rows[0].Key != want {
				t.Errorf("%s: %+v", pass.key, rows)
			}
			time.Sleep(2 * time.Minute)
			must(t, check.ErrorOf(s.repository.DeleteExpired(t.Context())))
		}
	})
}

// Rows of many processes are read by two statements: the names of all are read at once, and remembered.
func TestNames_OfManyRows(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		keys := []string{"k"}
		for i := range 5 {
			key := fmt.Sprintf("%032d", i)
			key = key[:8] + "-" + key[8:12] + "-" + key[12:16] + "-" + key[16:20] + "-" + key[20:] // a UUID
			keys = append(keys, key)
			try(t, obtain(t, shared.NewRegistry(t, s.another(sqllock.Autocommit).repository, &sqllock.RegistryOptions{Application: "orders"}), key))
		}
		time.Sleep(3 * time.Second)
		reader := s.another(sqllock.Autocommit).repository
		for pass, want := range []int{3, 2} { // the rows; the keys' names; the processes' names
			n := s.countQueries(func() {
				for key, row := range check.Value(reader.PeekAll(t.Context(), keys...))(t) {
					if row.Key != key || row.Process.Application != "orders" {
						t.Errorf("%+v", row)
					}
				}
			})
			check.Equal(t, fmt.Sprintf("pass %d: statements", pass), n, want)
		}
	})
}

// Without the table nothing fails, and it is asked for again after a quarter of an hour.
func TestNames_WithoutTheTable(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		s.db.DB.MustExecContext(t.Context(), "ALTER TABLE INT_LOCK_NAME RENAME TO AWAY")
		registry := shared.NewRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: 3 * time.Hour, NoRenew: true})
		lease := check.Value(registry.TryLock(t.Context(), "k"))(t)
		check.Equal(t, "statements", s.countExecs(func() { time.Sleep(10 * time.Minute) }), 1)
		other := s.another(sqllock.Autocommit)
		_, err := other.registry.TryLock(t.Context(), "k")
		var held *sqllock.HeldError
		if !errors.As(err, &held) || held.Process != (sqllock.Process{}) || held.Holder != lease.Holder() {
			t.Errorf("%v", err)
		}
		rows, err := s.repository.List(t.Context())
		if err != nil || len(rows) != 1 || rows[0].Key != "" || rows[0].Process != (sqllock.Process{}) {
			t.Errorf("%+v, %v", rows, err)
		}
		must(t, check.ErrorOf(registry.DeleteExpired(t.Context())))
		s.db.DB.MustExecContext(t.Context(), "ALTER TABLE AWAY RENAME TO INT_LOCK_NAME")
		time.Sleep(10 * time.Minute)
		check.Equal(t, "names", s.namedKeys(), 1)
	})
}

// A wait that its context ends says which process holds the lock, without a statement after that.
func TestNames_OfAWaitThatEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		holder := shared.NewRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: time.Hour, Application: "orders", NoRenew: true})
		must(t, check.ErrorOf(holder.TryLock(t.Context(), "k")))
		time.Sleep(3 * time.Second)
		other := s.another(sqllock.Autocommit)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := other.registry.Lock(ctx, "k")
		var held *sqllock.HeldError
		if !errors.As(err, &held) || held.Process.Application != "orders" || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

// A client id may begin with that of another client, and a dash.
func TestNames_OfAClientWithALongerID(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		registry := func(client, application string) *sqllock.Registry {
			repository := newRepository(t, s.db.DB, &sqllock.RepositoryOptions{ClientID: client, Isolation: sqllock.Autocommit})
			return shared.NewRegistry(t, repository, &sqllock.RegistryOptions{TTL: time.Hour, Application: application, NoRenew: true})
		}
		must(t, check.ErrorOf(registry("web-7", "orders").TryLock(t.Context(), "k")))
		time.Sleep(3 * time.Second)
		_, err := registry("web", "invoices").TryLock(t.Context(), "k")
		var held *sqllock.HeldError
		if !errors.As(err, &held) || held.Process.Application != "orders" {
			t.Errorf("%v", err)
		}
	})
}

// A process that is started again, with the client id that it had, is not taken for the one before.
func TestNames_OfAClientThatCameBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		other := s.another(sqllock.Autocommit)
		for _, version := range []string{"1", "2"} {
			repository := newRepository(t, s.db.DB, &sqllock.RepositoryOptions{ClientID: "orders-0", Isolation: sqllock.Autocommit})
			registry := shared.NewRegistry(t, repository, &sqllock.RegistryOptions{TTL: time.Hour, Version: version, NoRenew: true})
			must(t, check.ErrorOf(registry.TryLock(t.Context(), "k")))
			time.Sleep(6 * time.Minute)
			_, err := other.registry.TryLock(t.Context(), "k")
			var held *sqllock.HeldError
			if !errors.As(err, &held) || held.Process.Version != version {
				t.Errorf("version %s: %v", version, err)
			}
			must(t, registry.Close(t.Context()))
		}
	})
}

// A table of names that does not answer delays the end of a job by 250 ms at most, and changes nothing else.
func TestNames_AHangingRecord(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		registry := shared.NewRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: time.Hour, NoRenew: true})
		var began time.Time
		nightly := job.New(registry, "nightly", time.Second, func(context.Context) error {
			time.Sleep(2 * time.Second)
			began = time.Now()
			s.connector.Follow(func(ctx context.Context, m flaky.Moment) error {
				if m.N > 1 || m.Done {
					return nil
				}
				<-ctx.Done() // the first statement is that of the record
				return ctx.Err()
			})
			return nil
		})
		must(t, nightly(t.Context()))
		check.Takes(t, "the end of the job", began, 250*time.Millisecond, 250*time.Millisecond)
		s.connector.Follow(nil)
		if _, found, err := s.repository.Peek(t.Context(), "nightly"); err != nil || found {
			t.Errorf("the lock after the job: %v, %v", found, err)
		}
		if _, known := runs.Of(t.Context(), s.repository, "nightly"); known {
			t.Error("the record hung, and was written")
		}
	})
}
