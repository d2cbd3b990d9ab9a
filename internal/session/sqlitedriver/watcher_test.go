package sqlitedriver

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/poll"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

// A watched is a file that stands for a log, and what is reported of it.
type watched struct {
	*watcher

	t       *testing.T
	log     string
	reports chan poll.Report
	stop    func()
}

func watch(t *testing.T) *watched {
	t.Helper()
	if !watches {
		t.Skipf("writes are not reported on %s", runtime.GOOS)
	}
	file := filepath.Join(t.TempDir(), "a #%41.db")
	w := watcherOf(check.Value(Parse(DSN(file)))(t).Source).(*watcher)
	one := &watched{watcher: w, t: t, log: file + "-wal", reports: make(chan poll.Report)}
	t.Cleanup(func() { check.Must(t, w.Close()) })
	return one
}

// begin watches until end.
func (w *watched) begin() {
	ended := make(chan struct{})
	stop := w.Watch(func(r poll.Report) time.Duration {
		select {
		case w.reports <- r:
		case <-ended:
		}
		return 0
	})
	w.stop = func() {
		close(ended)
		stop()
	}
}

// await waits for a report.
func (w *watched) await(want poll.Report) {
	w.t.Helper()
	for r := range w.reports {
		if r == want {
			return
		}
	}
}

// write writes to the log, which it creates if it is missing.
func (w *watched) write() {
	w.t.Helper()
	f := check.Value(os.OpenFile(w.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600))(w.t)
	check.Must(w.t, check.ErrorOf(f.WriteString("a frame")))
	check.Must(w.t, f.Close())
}

// Writes are reported, also to a log that takes the place of another one, as after the last connection of all processes was
// closed, and to one that is not there at first.
func TestWatcher_FollowsTheLog(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(*watched){
		"removed": func(w *watched) { check.Must(w.t, os.Remove(w.log)) },
		"renamed": func(w *watched) { check.Must(w.t, os.Rename(w.log, w.log+"-old")) },
		"replaced": func(w *watched) {
			check.Must(w.t, os.WriteFile(w.log+"-new", nil, 0o600))
			check.Must(w.t, os.Rename(w.log+"-new", w.log))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := watch(t)
			w.begin()
			defer w.stop()
			w.await(poll.Unwatched) // it is not there
			for range 3 {
				w.write()
				w.await(poll.Missed)
				w.write()
				w.await(poll.Written)
				replace(w)
				w.await(poll.Unwatched)
			}
		})
	}
}

// A change of the owner or the mode, as SQLite of root makes with each connection, does not end the watch.
func TestWatcher_StaysWhileTheFileIsTheSame(t *testing.T) {
	t.Parallel()
	w := watch(t)
	w.write()
	w.begin()
	defer w.stop()
	w.await(poll.Missed)
	for range 3 {
		check.Must(t, os.Chmod(w.log, 0o640))
		check.Equal(t, "the report of the mode", <-w.reports, poll.Written)
		w.write()
		check.Equal(t, "the report of a write", <-w.reports, poll.Written)
	}
}

// A watch ends some time after the last one that needs it, and begins again. Close ends it at once. None leaves a descriptor.
func TestWatcher_LeavesNoDescriptor(t *testing.T) { // not parallel: it counts those of the process
	w := watch(t)
	w.write()
	for range 3 {
		check.Equal(t, "descriptors before", descriptors(t), 0)
		w.begin()
		w.await(poll.Missed)
		check.Equal(t, "descriptors", descriptors(t), 1)
		w.stop()
		for descriptors(t) > 0 {
			time.Sleep(10 * time.Millisecond)
		}
	}
	w.begin()
	w.await(poll.Missed)
	closed := make(chan error)
	go func() { closed <- w.Close() }()
	for {
		select {
		case <-w.reports:
			continue
		case err := <-closed:
			check.Must(t, err)
		}
		break
	}
	check.Equal(t, "descriptors after Close", descriptors(t), 0)
	w.stop()
	w.begin() // nothing begins after Close
	w.stop()
	check.Equal(t, "descriptors of a closed one", descriptors(t), 0)
}

// descriptors counts those of inotify in this process.
func descriptors(t *testing.T) (n int) {
	t.Helper()
	for _, one := range check.Value(os.ReadDir("/proc/self/fd"))(t) {
		if target, _ := os.Readlink("/proc/self/fd/" + one.Name()); strings.Contains(target, "inotify") {
			n++
		}
	}
	return n
}

// It watches the file to which SQLite writes: through symbolic links, and whatever the form of the DSN.
func TestWatcher_WatchesTheLogOfSQLite(t *testing.T) {
	t.Parallel()
	if !watches {
		t.Skipf("writes are not reported on %s", runtime.GOOS)
	}
	dir := t.TempDir()
	check.Must(t, os.Mkdir(filepath.Join(dir, "real"), 0o700))
	check.Must(t, os.Symlink("real", filepath.Join(dir, "linked")))
	check.Must(t, os.Symlink(filepath.Join("real", "l.db"), filepath.Join(dir, "l.db")))
	for _, dsn := range []string{
		filepath.Join(dir, "real", "l.db"), "sqlite:" + filepath.Join(dir, "linked", "l.db"), "file:" + filepath.Join(dir, "l.db"),
		"file://localhost" + filepath.Join(dir, "real", "%6c.db") + "?_pragma=synchronous(OFF)",
	} {
		target := check.Value(Parse(dsn))(t)
		pools := check.Value(target.Connect(t.Context(), session.Need{Connections: 2, Create: true}))(t)
		check.Must(t, check.ErrorOf(pools.DB.ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS t (n INTEGER)")))
		one := &watched{watcher: pools.Watcher.(*watcher), t: t, reports: make(chan poll.Report)}
		one.begin()
		one.await(poll.Missed)
		check.Must(t, check.ErrorOf(pools.DB.ExecContext(t.Context(), "INSERT INTO t VALUES (1)")))
		one.await(poll.Written)
		one.stop()
		check.Must(t, pools.Close())
	}
}
