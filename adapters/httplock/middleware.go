// Package httplock is net/http middleware that serves requests of one key one at a time, over all
// instances of a server.
//
//	orders := httplock.New(registry, func(r *http.Request) string { return "orders/" + r.PathValue("id") }, &httplock.Options{
//		OnError: func(r *http.Request, err error) { log.Print(r.URL.Path, ": ", err) },
//	})
//	mux.Handle("PUT /orders/{id}", orders(http.HandlerFunc(putOrder)))
package httplock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/sqllock/sqllock"
)

// Options are the settings of the middleware. A zero field means its default.
type Options struct {
	// Wait is how long a request waits for the lock before it is refused. By default it does not
	// wait.
	Wait time.Duration

	// OnError, if set, is called with each error that is not a refused request or its own end: an
	// error of the database, a bad key, a lease that was lost while the handler ran or that could
	// not be released. It is called before the request is answered, if its handler was not called.
	// It may be called by several goroutines at once.
	OnError func(*http.Request, error)
}

// New returns middleware that serves a request under the lock of its key. opts may be nil. A
// request for which key returns "" is served without a lock. Wrap the handler, not the mux: a mux
// sets the request's Pattern and path values, which key may want to read, only when it is served.
//
// The context of the request that the handler gets is that of the lease: it ends with cause
// [sqllock.ErrLockLost] before another request of the key can be served, and carries the lease for
// [sqllock.Registry.LeaseFrom]. The lease is renewed automatically for as long as the handler runs,
// or until a MaxHold of the registry ends it. Once the lease is lost, a handler that reads the body gets
// [os.ErrDeadlineExceeded], and a second later one that writes, too, so that a slow client does not keep it. Without a
// MaxHold, a slow client keeps the lock for as long as ReadTimeout and WriteTimeout of the server let it.
// The lock is released when the handler returns or panics. A handler that was not called is
// answered for:
//
//   - 423 Locked, if another request has the lock. Retry-After says in seconds for how long the row
//     of the holder has still to last, at least 1. The lock may be free earlier, or be renewed.
//   - 503 Service Unavailable, if the database fails ([sqllock.ErrDatabase]), if the registry is
//     closed, or if its cache is full of locks in use.
//   - 400 Bad Request, if the key is not valid UTF-8, or cannot be mapped.
//   - 500 Internal Server Error, if Wait is negative, or registry or key is nil.
//
// The lock is released when the handler returns. A handler that goes on after that, or hands its work
// over to others, works without it: [http.TimeoutHandler] belongs outside of this middleware.
//
// If the client goes away while its request waits for the lock, the handler is not called.
//
// A handler that writes much sends its response before the lock is released. A client that sends
// its next request before the first has ended may therefore meet its own lock: set Wait.
func New(registry *sqllock.Registry, key func(*http.Request) string, opts *Options) func(http.Handler) http.Handler {
	m := &middleware{registry: registry, key: key}
	if opts != nil {
		m.Options = *opts
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.serve(w, r, next) })
	}
}

type middleware struct {
	Options
	registry *sqllock.Registry
	key      func(*http.Request) string
}

func (m *middleware) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if m.registry == nil || m.key == nil {
		m.refuse(w, r, http.StatusInternalServerError, fmt.Errorf("%w: httplock needs a registry and a key", sqllock.ErrInvalid))
		return
	}
	key := m.key(r)
	if key == "" {
		next.ServeHTTP(w, r)
		return
	}
	lock, err := m.registry.Obtain(key)
	if errors.Is(err, sqllock.ErrInvalid) {
		m.refuse(w, r, http.StatusBadRequest, err)
		return
	}
	var lease *sqllock.Lease
	if err == nil {
		lease, err = lock.WithAutoRenew(true).TryLockFor(r.Context(), m.Wait)
	}
	if err != nil {
		m.refuse(w, r, status(err), err)
		return
	}
	defer func() { m.report(r, lease.Unlock(r.Context())) }() //nolint:contextcheck // of the request, whatever has become of the lease
	serveUnder(lease.Context(), next, w, r)                   //nolint:contextcheck // it is made from the request's
}

// serveUnder has next serve the request under the context of a lease.
func serveUnder(lease context.Context, next http.Handler, w http.ResponseWriter, r *http.Request) {
	interrupted := make(chan struct{})
	stop := context.AfterFunc(lease, func() {
		defer close(interrupted)
		interrupt(lease, w)
	})
	defer func() {
		if !stop() { // Unlock ends the context, too
			<-interrupted // w is not valid once this has returned
		}
	}()
	next.ServeHTTP(w, r.WithContext(lease))
}

// timeToAnswer is how long a handler whose lease was lost may still write.
const timeToAnswer = time.Second

// interrupt has a handler whose lease was lost return if it waits for its client: it does not see its context end.
// A ResponseWriter without deadlines is left alone.
func interrupt(lease context.Context, w http.ResponseWriter) {
	if !errors.Is(context.Cause(lease), sqllock.ErrLockLost) {
		return // the client has gone away, or the server stops
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now())
	_ = control.SetWriteDeadline(time.Now().Add(timeToAnswer))
}

// status returns the status of a response to a request that could not be locked.
func status(err error) int {
	switch {
	case errors.Is(err, sqllock.ErrNotAcquired):
		return http.StatusLocked
	case errors.Is(err, sqllock.ErrInvalid):
		return http.StatusInternalServerError
	default:
		return http.StatusServiceUnavailable
	}
}

// refuse answers a request that could not be locked.
func (m *middleware) refuse(w http.ResponseWriter, r *http.Request, code int, err error) {
	if code != http.StatusLocked {
		m.report(r, err)
	}
	var held *sqllock.HeldError
	if errors.As(err, &held) {
		w.Header().Set("Retry-After", strconv.Itoa(seconds(held.Left)))
	}
	http.Error(w, http.StatusText(code), code)
}

// seconds rounds up, as the client must not come too early.
func seconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }

func (m *middleware) report(r *http.Request, err error) {
	if err != nil && m.OnError != nil {
		m.OnError(r, err)
	}
}
