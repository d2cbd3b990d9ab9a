package exec

import (
	"fmt"
	"strings"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/state"
	"github.com/sqllock/sqllock/internal/seatkey"
	"github.com/sqllock/sqllock/sync/rwlock"
	"github.com/sqllock/sqllock/sync/semaphore"
)

// wanted is what a command needs while it runs: the plain lock of a key, or of several keys
// together, permits of a semaphore, or a read-write lock as a reader or as the writer.
type wanted struct {
	key       string
	more      []string // keys whose locks are needed too
	permits   int      // the semaphore's, or 0
	take      int      // how many of them
	shared    bool
	exclusive bool
}

// keys returns the key, and then the others.
func (w *wanted) keys() []string { return append([]string{w.key}, w.more...) }

// name is what messages call the lock.
func (w *wanted) name() string { return strings.Join(w.keys(), ", ") }

// isPlain reports whether the rows are those of the keys themselves.
func (w *wanted) isPlain() bool { return w.permits == 0 && !w.shared && !w.exclusive }

// kindFlags are the flags that say what is wanted. Each excludes the others.
var kindFlags = []string{"key", "permits", "shared", "exclusive"}

// checkWanted rejects values and combinations that make no sense. isGiven reports whether the
// command line has a flag.
func (x *execution) checkWanted(isGiven func(flag string) bool) error {
	var kind string
	for _, flag := range kindFlags {
		switch {
		case !isGiven(flag):
		case kind != "":
			return exit.Usagef("--%s and --%s exclude each other", kind, flag)
		default:
			kind = flag
		}
	}
	switch {
	case len(x.keys()) > sqllock.MaxKeys:
		return exit.Usagef("%d keys: at most %d can be held together", len(x.keys()), sqllock.MaxKeys)
	case isGiven("take") && kind != "permits":
		return exit.Usagef("--take needs --permits")
	case kind == "permits" && (x.permits < 1 || x.permits > semaphore.MaxPermits):
		return exit.Usagef("--permits %d: it must be 1 to %d", x.permits, semaphore.MaxPermits)
	case kind == "permits" && (x.take < 1 || x.take > x.permits):
		return exit.Usagef("--take %d: it must be 1 to --permits, %d", x.take, x.permits)
	case x.minHold > 0 && !x.isPlain():
		return exit.Usagef("--min-hold and --%s exclude each other", kind)
	}
	return nil
}

// description says what is wanted, for a message about its holder.
func (w *wanted) description() string {
	switch {
	case w.permits > 0:
		return fmt.Sprintf("%d of %d permits of %q", w.take, w.permits, w.key)
	case w.shared:
		return fmt.Sprintf("%q for reading", w.key)
	case w.exclusive:
		return fmt.Sprintf("%q for writing", w.key)
	default:
		return fmt.Sprintf("%q", w.name())
	}
}

// remember records the keys of the rows, so that listings can show them.
func (w *wanted) remember() {
	for _, key := range w.keys() {
		state.RememberKey(key)
	}
	switch {
	case w.permits > 0:
		state.RememberSeats(w.key, seatkey.Permit, w.permits)
	case w.shared || w.exclusive:
		state.RememberSeats(w.key, seatkey.Reader, rwlock.MaxReaders)
	}
}
