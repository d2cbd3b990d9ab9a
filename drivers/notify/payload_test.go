package notify_test

import (
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
)

// TestNotifiedDeletions runs everything that deletes a row, and calls that delete none.
func TestNotifiedDeletions(t *testing.T) {
	t.Parallel()
	f := newFixtureWithoutListener(t)
	o := f.record()
	r := f.repository(f.db.DB, sqllock.RepositoryOptions{Notify: true, Keys: sqllock.PlainKeys})
	notifies := func(what string, want ...string) {
		t.Helper()
		got := o.next()
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("%s notified %q, want %q", what, got, want)
		}
	}

	release := f.acquire(r, "ä b")
	notifies("an acquisition")
	check.Equal(t, "renewed", check.Value(r.Renew(t.Context(), "ä b", "another holder", never))(t), false)
	check.Equal(t, "deleted", check.Value(r.Delete(t.Context(), "ä b", "another holder"))(t), false)
	notifies("the release of another holder")
	release()
	notifies("a release", "int_lock ä b")

	f.acquire(r, "a")
	f.acquire(r, "b")
	must(t, r.ReleaseAll(t.Context()))
	notifies("ReleaseAll", "int_lock a", "int_lock b")

	f.acquire(r, "fresh")
	for _, key := range []string{"c", "d"} {
		must(t, check.ErrorOf(r.Acquire(t.Context(), key, r.NewHolder(), sqllock.MinTTL)))
	}
	f.until("expired", func() bool {
		row, _, err := r.Peek(t.Context(), "d")
		must(t, err)
		return row.Expired()
	})
	deleted := check.Value(r.DeleteExpired(t.Context()))(t)
	check.Equal(t, "deleted", deleted, 2)
	notifies("DeleteExpired", "int_lock c", "int_lock d")

	registry := check.Value(sqllock.NewRegistry(r, &sqllock.RegistryOptions{TTL: time.Minute}))(t)
	lock := check.Value(registry.Obtain("e"))(t)
	must(t, check.Value(lock.WithMinHold(time.Minute).Lock(t.Context()))(t).Unlock(t.Context()))
	notifies("Unlock with a minimum hold")
}

// TestTrigger creates the trigger of docs/notify.md and deletes a row as Spring does.
func TestTrigger(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	o := f.record()
	f.createTrigger()

	quiet := f.repository(f.db.DB, sqllock.RepositoryOptions{Keys: sqllock.PlainKeys})
	f.acquire(quiet, "a")()
	check.Same(t, "the trigger notified", o.next(), []string{"int_lock a"})
	both := f.repository(f.db.DB, sqllock.RepositoryOptions{Keys: sqllock.PlainKeys, Notify: true})
	f.acquire(both, "b")()
	check.Same(t, "trigger and Notify notified", o.next(), []string{"int_lock b"})

	f.acquire(f.repository(f.db.DB, sqllock.RepositoryOptions{}), "k")
	got := f.lockInBackground(t.Context(), f.registry(never), "k")
	f.checkWaiting(got)
	must(t, check.ErrorOf(f.db.DB.ExecContext(t.Context(), "DELETE FROM INT_LOCK WHERE REGION = $1", f.name)))
	f.checkAcquired(got)
}

var sqlBlock = regexp.MustCompile("(?s)```sql\n(CREATE .*?)```")

func (f *fixture) createTrigger() {
	f.Helper()
	doc := check.Value(os.ReadFile("../../docs/notify.md"))(f.T)
	block := sqlBlock.FindSubmatch(doc)
	if block == nil {
		f.Fatal("docs/notify.md has no trigger")
	}
	must(f.T, check.ErrorOf(f.db.DB.ExecContext(f.Context(), string(block[1]))))
}
