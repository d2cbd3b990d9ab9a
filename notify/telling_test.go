package notify_test

import (
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

// TestWhatIsTold goes through all that removes a row, and what does not.
func TestWhatIsTold(t *testing.T) {
	t.Parallel()
	w := newSilentWorld(t)
	o := w.overhear()
	r := w.process(w.db.DB, sqllock.RepositoryOptions{Notify: true, Keys: sqllock.PlainKeys})
	told := func(what string, want ...string) {
		t.Helper()
		got := o.since()
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("%s told %q, want %q", what, got, want)
		}
	}

	release := w.taken(r, "ä b")
	told("an acquisition")
	if renewed, err := r.Renew(t.Context(), "ä b", "somebody else", never); err != nil || renewed {
		t.Fatal(renewed, err)
	}
	if deleted, err := r.Delete(t.Context(), "ä b", "somebody else"); err != nil || deleted {
		t.Fatal(deleted, err)
	}
	told("somebody else's release")
	release()
	told("a release", "int_lock ä b")

	w.taken(r, "a")
	w.taken(r, "b")
	must(t, r.Close(t.Context()))
	told("Close", "int_lock a", "int_lock b")

	w.taken(r, "fresh")
	for _, key := range []string{"c", "d"} {
		_, err := r.Acquire(t.Context(), key, r.NewHolder(), sqllock.MinTTL)
		must(t, err)
	}
	w.until("expired", func() bool {
		row, _, err := r.Peek(t.Context(), "d", never)
		must(t, err)
		return row.Expired()
	})
	deleted, err := r.DeleteExpired(t.Context(), never)
	must(t, err)
	if deleted != 2 {
		t.Fatalf("%d deleted", deleted)
	}
	told("DeleteExpired", "int_lock c", "int_lock d")

	registry, err := sqllock.NewRegistry(r, nil)
	must(t, err)
	lock, err := registry.Obtain("e")
	must(t, err)
	lease, err := lock.Lock(t.Context())
	must(t, err)
	must(t, lease.UnlockAfter(t.Context(), time.Minute))
	told("UnlockAfter")
}

// TestTrigger runs the trigger of docs/notify.md, with a DELETE as Spring's.
func TestTrigger(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.overhear()
	w.createTrigger()

	quiet := w.process(w.db.DB, sqllock.RepositoryOptions{Keys: sqllock.PlainKeys})
	w.taken(quiet, "a")()
	if got := o.since(); !slices.Equal(got, []string{"int_lock a"}) {
		t.Fatalf("the trigger told %q", got)
	}
	both := w.process(w.db.DB, sqllock.RepositoryOptions{Keys: sqllock.PlainKeys, Notify: true})
	w.taken(both, "b")()
	if got := o.since(); !slices.Equal(got, []string{"int_lock b"}) {
		t.Fatalf("trigger and Notify told %q", got)
	}

	w.taken(w.process(w.db.DB, sqllock.RepositoryOptions{}), "k")
	got := w.waiter(t.Context(), w.waiters(never), "k")
	w.asleep(got)
	_, err := w.db.DB.ExecContext(t.Context(), "DELETE FROM INT_LOCK WHERE REGION = $1", w.name)
	must(t, err)
	w.woken(got)
}

var sqlBlock = regexp.MustCompile("(?s)```sql\n(CREATE .*?)```")

func (w *world) createTrigger() {
	w.Helper()
	doc, err := os.ReadFile("../docs/notify.md")
	must(w.T, err)
	block := sqlBlock.FindSubmatch(doc)
	if block == nil {
		w.Fatal("docs/notify.md has no trigger")
	}
	_, err = w.db.DB.ExecContext(w.Context(), string(block[1]))
	must(w.T, err)
}
