package sqlitedriver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/sqllock/sqllock/internal/poll"
	"github.com/sqllock/sqllock/internal/session"
)

const (
	// watches reports whether the system reports writes of other processes to a file without opening it. kqueue opens
	// the file, and Windows reports a write when the file is closed.
	watches = runtime.GOOS == "linux"
	// eventPause is the time between two reports. Meanwhile the system keeps one event for all writes.
	eventPause = 5 * time.Millisecond
	// watchAgain is the time between attempts to watch a file that cannot be watched, or is not there.
	watchAgain = time.Second
	// watchOn is how long the file is watched after the last waiter has left. To begin and end costs more.
	watchOn = time.Second
)

// A watcher implements [session.Watcher] for a database in WAL mode: it watches the write-ahead log, which each
// transaction that writes appends to. It opens neither the log nor the database: when a process closes a descriptor of
// a file, it loses all POSIX locks that it has on the file, and SQLite's are such.
//
// A database in another mode has no log. Without one, or where the system has no watch left, nothing is reported.
type watcher struct {
	file string // of the database

	mu      sync.Mutex
	reports map[*func(poll.Report) time.Duration]struct{} // of those who watch
	cancel  context.CancelFunc                            // ends the goroutine; nil if there is none
	done    chan struct{}                                 // closed when it has ended
	ending  *time.Timer                                   // ends it when no one watches
	closed  bool
}

// watcherOf returns the watcher for the database of a URI.
func watcherOf(source string) session.Watcher {
	if absolute, err := absolute(source); err == nil {
		source = absolute
	}
	path, _, _ := strings.Cut(strings.TrimPrefix(source, "file:"), "?")
	return newWatcher(nameOf(path))
}

func newWatcher(file string) *watcher {
	w := &watcher{file: file, reports: make(map[*func(poll.Report) time.Duration]struct{})}
	w.ending = time.AfterFunc(watchOn, w.endUnused)
	w.ending.Stop()
	return w
}

// Watch implements poll.Watcher.
func (w *watcher) Watch(report func(poll.Report) time.Duration) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := &report
	w.reports[key] = struct{}{}
	w.ending.Stop()
	if w.cancel == nil && !w.closed && watches {
		w.begin()
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.reports, key)
		if len(w.reports) == 0 && w.cancel != nil {
			w.ending.Reset(watchOn)
		}
	}
}

func (w *watcher) begin() {
	var ctx context.Context
	ctx, w.cancel = context.WithCancel(context.Background())
	last, done := w.done, make(chan struct{})
	w.done = done
	go func() {
		defer close(done)
		if last != nil {
			<-last
		}
		w.run(ctx)
	}()
}

// endUnused ends the goroutine if no one watches.
func (w *watcher) endUnused() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.reports) == 0 {
		w.end()
	}
}

func (w *watcher) end() {
	if w.cancel != nil {
		w.cancel()
		w.cancel = nil
	}
}

// Close implements [session.Watcher].
func (w *watcher) Close() error {
	w.mu.Lock()
	w.closed = true
	w.ending.Stop()
	w.end()
	done := w.done
	w.mu.Unlock()
	if done != nil {
		<-done
	}
	return nil
}

// run reports writes until ctx ends.
func (w *watcher) run(ctx context.Context) {
	file, err := filepath.EvalSymlinks(w.file) // SQLite has the log beside the file itself
	if err != nil {
		file = w.file
	}
	for {
		pause := watchAgain
		if err := w.watch(ctx, file+"-wal"); errors.Is(err, errReplaced) {
			pause = eventPause
		}
		w.report(poll.Unwatched)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// errReplaced is why a file has to be watched anew.
var errReplaced = errors.New("the file was moved or removed")

// watch reports writes to a file until ctx ends, or it is not the file of that name any more.
func (w *watcher) watch(ctx context.Context, path string) error {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer func() { _ = events.Close() }()
	watched, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := events.Add(path); err != nil {
		return err
	}
	w.report(poll.Missed)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		rest := time.Duration(0)
		select {
		case event := <-events.Events:
			rest = w.report(poll.Written)
			switch {
			case event.Op == fsnotify.Write:
			case event.Op == fsnotify.Chmod && isStill(watched, path): // SQLite of root sets the owner whenever it opens the file
			default:
				return errReplaced
			}
		case err := <-events.Errors:
			if err == nil { // it is closed
				return errReplaced
			}
			rest = w.report(poll.Missed) // there were too many
		case <-ctx.Done():
			return ctx.Err()
		}
		pause.Reset(max(rest, eventPause))
	}
}

// isStill reports whether the file of that name is the one that is watched. It opens no descriptor.
func isStill(watched os.FileInfo, path string) bool {
	now, err := os.Stat(path)
	return err == nil && os.SameFile(watched, now)
}

// report returns for how long all who watch need no further report.
func (w *watcher) report(r poll.Report) (pause time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := true
	for report := range w.reports {
		if one := (*report)(r); first || one < pause {
			pause, first = one, false
		}
	}
	return pause
}
