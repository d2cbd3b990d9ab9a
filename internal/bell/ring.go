package bell

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/transaction"
)

const (
	// ringTimeout limits what a ring may take.
	ringTimeout = time.Second
	// firstSilence and lastSilence limit the time after a failure in which nothing is rung. It doubles with each that comes
	// within lastSilence after the one before.
	firstSilence, lastSilence = time.Second, time.Minute
	// tellEvery is how often failures are told at most.
	tellEvery = time.Minute
	// maxAsked is for how many names one statement asks whether they are taken.
	maxAsked = 256
)

// A ringer ends the sleep of those that have taken a name, in the background.
type ringer struct {
	pool transaction.Pool
	own  string // the name by which this process ends its own sleep

	mu      sync.Mutex
	taken   []string // names to ring for
	unknown []string // names of which it is not known whether they are taken
	ringing chan struct{}
	until   time.Time // when it may ring again, after a failure
	silence time.Duration

	onFailure []func(error)
	told      time.Time // when they were last told something
}

func newRinger(db *sql.DB, d *sqltext.Dialect) *ringer {
	return &ringer{pool: transaction.Pool{DB: db, Dialect: d, Gate: transaction.GateOf(db)}, own: "sqllock wakes " + rand.Text()}
}

// Rings reports whether releases are to ring. They are not for a while after a ring has failed, as it does if the one
// who sleeps is another user.
func (r *ringer) Rings() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rings()
}

func (r *ringer) rings() bool { return !time.Now().Before(r.until) }

// Mute has releases not ring for a while: the server does not do what that needs.
func (r *ringer) Mute(why error) {
	r.mu.Lock()
	r.fail()
	r.mu.Unlock()
	r.tell("release", why)
}

// tell tells why a statement woke no one, or was no sleep, once in a while. A connection that has failed, or that the server has
// ended, and a server that does not answer, are not told: all other statements show them. No one waits until it has been told:
// it may call what ends the bell.
func (r *ringer) tell(statement string, why error) {
	if numberOf(why) == 0 && !errors.Is(why, errBrief) || r.pool.Dialect.Classify(why) == sqltext.Closed {
		return
	}
	r.mu.Lock()
	now := time.Now()
	due := r.told.IsZero() || now.Sub(r.told) >= tellEvery
	if due {
		r.told = now
	}
	all := r.onFailure
	r.mu.Unlock()
	for _, onFailure := range all {
		if due {
			go onFailure(fmt.Errorf("%s: %w", statement, why))
		}
	}
}

// fail begins a silence, or leaves the one that is under way as it is.
func (r *ringer) fail() {
	if !r.rings() {
		return // it was sent before
	}
	if time.Since(r.until) > lastSilence {
		r.silence = 0
	}
	r.silence = min(max(firstSilence, 2*r.silence), lastSilence)
	r.until = time.Now().Add(r.silence)
}

// Ring rings for some names, and does not wait for it. taken reports whether they were seen to be taken.
func (r *ringer) Ring(taken bool, names ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if taken {
		r.taken = append(r.taken, names...)
	} else {
		r.unknown = append(r.unknown, names...)
	}
	if r.ringing == nil {
		r.ringing = make(chan struct{})
		go r.ring()
	}
}

// finish waits until all has been rung.
func (r *ringer) finish() {
	r.mu.Lock()
	ringing := r.ringing
	r.mu.Unlock()
	if ringing != nil {
		<-ringing
	}
}

// next returns what to do next: to ring for a name, or to ask for some. There is nothing if both are empty. After a failure
// those that wait are left out, too, except for this process's own name.
func (r *ringer) next() (name string, unknown []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.rings() {
		r.taken = slices.DeleteFunc(r.taken, func(name string) bool { return name != r.own })
		r.unknown = nil
	}
	switch {
	case len(r.taken) > 0:
		name, r.taken = r.taken[0], r.taken[1:]
	case len(r.unknown) > 0:
		n := min(len(r.unknown), maxAsked)
		unknown, r.unknown = r.unknown[:n], r.unknown[n:]
	default:
		r.taken, r.unknown = nil, nil
		close(r.ringing)
		r.ringing = nil
	}
	return name, unknown
}

func (r *ringer) ring() {
	for {
		name, unknown := r.next()
		switch {
		case name != "":
			if err := r.kill(name); name != r.own { // one may be allowed to end only what one has begun
				r.note(err)
			}
		case unknown != nil:
			taken, err := r.ask(unknown)
			r.note(err)
			r.mu.Lock()
			r.taken = append(r.taken, taken...)
			r.mu.Unlock()
		default:
			return
		}
	}
}

func (r *ringer) note(err error) {
	r.mu.Lock()
	if err != nil {
		r.fail()
	} else {
		r.silence = 0
	}
	r.mu.Unlock()
	r.tell("KILL QUERY", err)
}

// kill ends the statement of the session that has a name.
func (r *ringer) kill(name string) error {
	err := r.send(func(ctx context.Context, conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, "KILL QUERY IS_USED_LOCK('"+name+"')")
		return err
	})
	if isNoSession(err) { // it sleeps no more
		return nil
	}
	return err
}

// ask returns which of some names are taken.
func (r *ringer) ask(names []string) (taken []string, err error) {
	var answer string
	err = r.send(func(ctx context.Context, conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, "SELECT CONCAT(IS_USED_LOCK('"+strings.Join(names, "') IS NOT NULL, IS_USED_LOCK('")+"') IS NOT NULL)").Scan(&answer)
	})
	for i, name := range names {
		if i < len(answer) && answer[i] == '1' {
			taken = append(taken, name)
		}
	}
	return taken, err
}

func (r *ringer) send(statement func(context.Context, *sql.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), ringTimeout)
	defer cancel()
	_, err := transaction.On(ctx, r.pool, func(conn *sql.Conn) (none struct{}, err error) { return none, statement(ctx, conn) })
	return err
}

// IsAnswer reports whether the server has answered a statement with an error.
func (*ringer) IsAnswer(err error) bool { return numberOf(err) != 0 }

// isInterrupted reports whether a KILL has ended a statement, and no limit on statements.
func isInterrupted(err error) bool { return numberOf(err) == 1317 } // ER_QUERY_INTERRUPTED

// isNoSession reports whether there is no session of that number.
func isNoSession(err error) bool { return numberOf(err) == 1094 } // ER_NO_SUCH_THREAD

// numberOf returns the number of the error with which the server has answered, or 0.
func numberOf(err error) uint16 {
	answer := new(mysql.MySQLError)
	if !errors.As(err, &answer) {
		return 0
	}
	return answer.Number
}
