//go:build linux

package history_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/sqllock/sqllock/dev/reliability/clusters/history"
	"github.com/sqllock/sqllock/internal/test/check"
)

func TestReadOrdersWhatSeveralProcessesWrote(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := []history.Event{
		{Op: history.Acquire, Key: "k", Lease: "a", Token: 7, From: 1, To: 2},
		{Op: history.Write, Key: "k", Lease: "a", ID: "x", Guarded: true, From: 2, To: 3, Err: "lost", Lost: true},
		{Op: history.Fault, ID: "kill", From: 1, To: 4, Healed: 3},
	}
	for i, name := range []string{"one", "two", "one"} {
		w, err := history.NewWriter(dir, name)
		check.Must(t, err)
		w.Add(want[i])
		check.Must(t, w.Close())
	}
	got, err := history.Read(dir)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("error %v, events %+v", err, got)
	}
}

func TestReadDropsAnIncompleteLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const text = `{"op":"alive","from":1,"to":1}` + "\n" + `{"op":"ali`
	check.Must(t, os.WriteFile(filepath.Join(dir, "killed.jsonl"), []byte(text), 0o600))
	if got, err := history.Read(dir); err != nil || len(got) != 1 {
		t.Errorf("%v, error %v", got, err)
	}
}

func TestNowNeverGoesBack(t *testing.T) {
	t.Parallel()
	last := history.Now()
	for range 1000 {
		now := history.Now()
		if now < last {
			t.Fatalf("%d after %d", now, last)
		}
		last = now
	}
}
