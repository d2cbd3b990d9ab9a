package notify_test

import (
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

// TestNotifiedDeletions runs everything that deletes a row, and calls that delete none.
func TestNotifiedDeletions(t *testing.T) {
	t.Parallel()
	f := newFixtureWithoutListener(t)
	o := f.record()
	r := f.repository(f.db.DB, sqllock.RepositoryOptions{Notify: true, Keys: sqllock.PlainKeys})
	check := func(what string, want ...string) {
		t.Helper()
		got := o.next()
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("%s notified %q, want %q", what, got, want)
		}
	}

	release := f.acquire(r, "ä b")
	check("an acquisition")
	if renewed, err := r.Renew(t.Context(), "ä b", "another holder", never); err != nil || renewed {
		t.Fatal(renewed, err)
	}
	if deleted, err := r.Delete(t.Context(), "ä b", "another holder"); err != nil || deleted {
		t.Fatal(deleted, err)
	}
	check("the release of another holder")
	release()
	check("a release", "int_lock ä b")

	f.acquire(r, "a")
	f.acquire(r, "b")
	must(t, r.ReleaseAll(t.Context()))
	check("ReleaseAll", "int_lock a", "int_lock b")

	f.acquire(r, "fresh")
	for _, key := range []string{"c", "d"} {
		_, err := r.Acquire(t.Context(), key, r.NewHolder(), sqllock.MinTTL)
		must(t, err)
	}
	f.until("expired", func() bool {
		row, _, err := r.Peek(t.Context(), "d")
		must(t, err)
		return row.Expired()
	})
	deleted, err := r.DeleteExpired(t.Context())
	must(t, err)
	if deleted != 2 {
		t.Fatalf("%d deleted", deleted)
	}
	check("DeleteExpired", "int_lock c", "int_lock d")

	registry, err := sqllock.NewRegistry(r, &sqllock.RegistryOptions{TTL: time.Minute})
	must(t, err)
	lock, err := registry.Obtain("e")
	must(t, err)
	lease, err := lock.WithMinHold(time.Minute).Lock(t.Context())
	must(t, err)
	must(t, lease.Unlock(t.Context()))
	check("Unlock with a minimum hold")
}

// TestTrigger creates the trigger of docs/notify.md and deletes a row as Spring does.
func TestTrigger(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	o := f.record()
	f.createTrigger()

	quiet := f.repository(f.db.DB, sqllock.RepositoryOptions{Keys: sqllock.PlainKeys})
	f.acquire(quiet, "a")()
	if got := o.next(); !slices.Equal(got, []string{"int_lock a"}) {
		t.Fatalf("the trigger notified %q", got)
	}
	both := f.repository(f.db.DB, sqllock.RepositoryOptions{Keys: sqllock.PlainKeys, Notify: true})
	f.acquire(both, "b")()
	if got := o.next(); !slices.Equal(got, []string{"int_lock b"}) {
		t.Fatalf("trigger and Notify notified %q", got)
	}

	f.acquire(f.repository(f.db.DB, sqllock.RepositoryOptions{}), "k")
	got := f.lockInBackground(t.Context(), f.registry(never), "k")
	f.checkWaiting(got)
	_, err := f.db.DB.ExecContext(t.Context(), "DELETE FROM INT_LOCK WHERE REGION = $1", f.name)
	must(t, err)
	f.checkAcquired(got)
}

var sqlBlock = regexp.MustCompile("(?s)```sql\n(CREATE .*?)```")

func (f *fixture) createTrigger() {
	f.Helper()
	doc, err := os.ReadFile("../../docs/notify.md")
	must(f.T, err)
	block := sqlBlock.FindSubmatch(doc)
	if block == nil {
		f.Fatal("docs/notify.md has no trigger")
	}
	_, err = f.db.DB.ExecContext(f.Context(), string(block[1]))
	must(f.T, err)
}
