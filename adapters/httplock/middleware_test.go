package httplock_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/adapters/httplock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/testmain"
	"github.com/sqllock/sqllock/sqllocktest"
)

func TestMain(m *testing.M) { testmain.Run(m) }

// A server is one instance with the middleware.
type server struct {
	*testing.T
	http.Handler
	errs []error
}

// serve returns an instance whose key is the path without its slash.
func serve(t *testing.T, r *sqllock.Registry, wait time.Duration, handle http.HandlerFunc) *server {
	t.Helper()
	s := &server{T: t}
	s.Handler = httplock.New(r, func(r *http.Request) string { return r.URL.Path[1:] }, &httplock.Options{
		Wait: wait, OnError: func(_ *http.Request, err error) { s.errs = append(s.errs, err) },
	})(handle)
	return s
}

// get sends a request, and returns its answer.
func (s *server) get(ctx context.Context, path string) *httptest.ResponseRecorder {
	s.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody))
	return w
}

// answers checks the status and Retry-After of the answer to a request.
func (s *server) answers(ctx context.Context, path string, status int, retryAfter string) {
	s.Helper()
	w := s.get(ctx, path)
	if got := w.Header().Get("Retry-After"); w.Code != status || got != retryAfter {
		s.Errorf("%s: %d, Retry-After %q; want %d, %q", path, w.Code, got, status, retryAfter)
	}
}

// inBubble runs a test in virtual time.
func inBubble(t *testing.T, test func(t *testing.T, r *sqllocktest.Registry)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, sqllocktest.New(t, nil)) })
}

func ok(http.ResponseWriter, *http.Request) {}

func minutes(_ http.ResponseWriter, r *http.Request) {
	select {
	case <-time.After(2 * time.Minute):
	case <-r.Context().Done():
	}
}

// TestARequestIsRefusedWhileAnotherInstanceHasTheLock has a handler that takes longer than the
// time-to-live.
func TestARequestIsRefusedWhileAnotherInstanceHasTheLock(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		slow, fast := serve(t, r.Another(), 0, minutes), serve(t, r.Registry, 0, ok)
		ended := make(chan int)
		go func() { ended <- slow.get(t.Context(), "/a").Code }()
		time.Sleep(time.Millisecond) // the row has just less than its time-to-live left
		fast.answers(t.Context(), "/a", http.StatusLocked, "10")
		fast.answers(t.Context(), "/b", http.StatusOK, "")
		fast.answers(t.Context(), "/", http.StatusOK, "") // no key
		time.Sleep(time.Minute)
		check.Equal(t, "status", fast.get(t.Context(), "/a").Code, http.StatusLocked)
		check.Equal(t, "status", <-ended, http.StatusOK)
		fast.answers(t.Context(), "/a", http.StatusOK, "")
		check.Same(t, "errors", append(slow.errs, fast.errs...), nil)
	})
}

// TestRetryAfterIsAtLeastASecond has a row that is about to expire.
func TestRetryAfterIsAtLeastASecond(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		repository := r.Another().Repository()
		check.Must(t, check.ErrorOf(repository.Acquire(t.Context(), "a", repository.NewHolder(), 50*time.Millisecond)))
		serve(t, r.Registry, 0, ok).answers(t.Context(), "/a", http.StatusLocked, "1")
	})
}

// TestARequestWaits gives a request less time than the handler takes, and more.
func TestARequestWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		slow := serve(t, r.Another(), 0, minutes)
		ended := make(chan int)
		go func() { ended <- slow.get(t.Context(), "/a").Code }()
		time.Sleep(time.Millisecond)
		check.Equal(t, "status", serve(t, r.Registry, 30*time.Second, ok).get(t.Context(), "/a").Code, http.StatusLocked)
		serve(t, r.Registry, 2*time.Minute, ok).answers(t.Context(), "/a", http.StatusOK, "")
		<-ended
	})
}

// TestAClientThatGoesAwayIsNotServed ends the context of a request that waits.
func TestAClientThatGoesAwayIsNotServed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		lease := check.Value(r.Another().Lock(t.Context(), "a"))(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := serve(t, r.Registry, time.Hour, func(http.ResponseWriter, *http.Request) { t.Error("served") })
		if code := s.get(ctx, "/a").Code; code == http.StatusOK {
			t.Error(code)
		}
		check.Same(t, "errors", s.errs, nil)
		check.Must(t, lease.Unlock(t.Context()))
	})
}

// TestTheHandlerSeesTheLoss takes the lock away from a request.
func TestTheHandlerSeesTheLoss(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		s := serve(t, r.Registry, 0, func(_ http.ResponseWriter, req *http.Request) {
			check.Is(t, check.ErrorOf(r.LeaseFrom(req.Context(), "a")), nil)
			r.Lose("a")
			check.Is(t, context.Cause(req.Context()), sqllock.ErrLockLost)
		})
		s.get(t.Context(), "/a")
		if len(s.errs) != 1 || !errors.Is(s.errs[0], sqllock.ErrLockLost) {
			t.Error(s.errs)
		}
	})
}

// TestTheLockIsReleased ends the context of a request that is served, and has its handler panic as net/http recommends.
func TestTheLockIsReleased(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		ctx, cancel := context.WithCancel(t.Context())
		s := serve(t, r.Registry, 0, func(_ http.ResponseWriter, req *http.Request) {
			cancel()
			<-req.Context().Done()
			panic(http.ErrAbortHandler)
		})
		func() {
			defer func() {
				if recover() != http.ErrAbortHandler { //nolint:errorlint // the very value
					t.Error("the panic did not go on")
				}
			}()
			s.get(ctx, "/a")
		}()
		serve(t, r.Another(), 0, ok).answers(t.Context(), "/a", http.StatusOK, "")
		check.Same(t, "errors", s.errs, nil)
	})
}

// TestTimeoutHandlers has a handler that ignores its context. Outside of the middleware,
// http.TimeoutHandler answers and the lock stays held; inside, it releases the lock.
func TestTimeoutHandlers(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		stubborn := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Minute) })
		timeout := func(h http.Handler) http.Handler { return http.TimeoutHandler(h, time.Second, "") }
		locked := httplock.New(r.Registry, func(*http.Request) string { return "a" }, nil)
		for _, test := range []struct {
			handler http.Handler
			second  int
		}{
			{timeout(locked(stubborn)), http.StatusLocked},
			{locked(timeout(stubborn)), http.StatusOK},
		} {
			s := &server{T: t, Handler: test.handler}
			s.answers(t.Context(), "/", http.StatusServiceUnavailable, "")
			check.Equal(t, "status of a second request", serve(t, r.Another(), 0, ok).get(t.Context(), "/a").Code, test.second)
			time.Sleep(2 * time.Minute)
		}
	})
}

// TestASlowClientDoesNotKeepItsKey has a client stop sending its body. A handler that reads it does not see its
// context end; the registry's MaxHold frees the key, and has the handler return.
func TestASlowClientDoesNotKeepItsKey(t *testing.T) {
	t.Parallel()
	// real time: the lease of a database in this process must end, and nothing has to keep it
	registry := sqllocktest.New(t, &sqllock.RegistryOptions{TTL: time.Second, MaxHold: time.Second, NoRenew: true})
	began, ended := make(chan struct{}), make(chan error, 1)
	lock := httplock.New(registry.Registry, func(*http.Request) string { return "k" }, nil)
	server := httptest.NewServer(lock(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		_, err := io.ReadAll(r.Body)
		ended <- err
	})))
	defer server.Close()
	conn := check.Value(new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String()))(t)
	defer conn.Close()
	check.Must(t, check.ErrorOf(io.WriteString(conn, "PUT / HTTP/1.1\r\nHost: k\r\nContent-Length: 9\r\n\r\nslow")))
	<-began
	select {
	case err := <-ended:
		check.Is(t, err, os.ErrDeadlineExceeded)
	case <-time.After(3 * time.Minute):
		t.Error("the handler reads although the lease has ended")
	}
}

// A slowWriter is a ResponseWriter whose deadlines take a second to set. It notes when one is set.
type slowWriter struct {
	*httptest.ResponseRecorder

	set time.Time
}

func (w *slowWriter) SetReadDeadline(time.Time) error {
	// real time: none, in the bubble of the test
	time.Sleep(time.Second)
	w.set = time.Now()
	return nil
}

func (w *slowWriter) SetWriteDeadline(at time.Time) error { return w.SetReadDeadline(at) }

// TestNothingUsesTheResponseAfterItsHandler has a handler return while the loss of its lease sets deadlines. The server
// may give the connection to the next request then.
func TestNothingUsesTheResponseAfterItsHandler(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		s := serve(t, r.Registry, 0, func(http.ResponseWriter, *http.Request) {
			r.Lose("a")
			synctest.Wait() // until the first deadline is being set
		})
		w := &slowWriter{ResponseRecorder: httptest.NewRecorder()}
		s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/a", http.NoBody))
		returned := time.Now()
		time.Sleep(time.Minute)
		if !w.set.Equal(returned) {
			t.Error("a deadline was set", w.set.Sub(returned), "after the request")
		}
	})
}

// TestWhatIsNotServed has requests that cannot have their lock. The operator is told why, and the client is told
// whether it is its own fault.
func TestWhatIsNotServed(t *testing.T) {
	t.Parallel()
	cutOff := errors.New("cut off")
	nothing := func(*testing.T, *sqllocktest.Registry) {}
	broken := func(_ *testing.T, r *sqllocktest.Registry) { r.Break(cutOff) }
	for name, test := range map[string]struct {
		of      sqllock.RegistryOptions
		prepare func(*testing.T, *sqllocktest.Registry)
		path    string
		wait    time.Duration
		status  int
		err     error
	}{
		"the database fails": {prepare: broken, path: "/a", status: http.StatusServiceUnavailable, err: cutOff},
		"an outage that it does not outlast": {
			of: sqllock.RegistryOptions{WaitThroughOutages: true, NoRenew: true}, prepare: broken,
			path: "/a", wait: time.Hour, status: http.StatusServiceUnavailable, err: cutOff,
		},
		"the registry is closed": {
			prepare: func(t *testing.T, r *sqllocktest.Registry) { check.Must(t, r.Close(t.Context())) },
			path:    "/a", status: http.StatusServiceUnavailable, err: sqllock.ErrClosed,
		},
		"more requests than the registry keeps locks": {
			of: sqllock.RegistryOptions{CacheCapacity: 1, NoRenew: true},
			prepare: func(t *testing.T, r *sqllocktest.Registry) {
				var serving sync.WaitGroup
				serving.Go(func() {
					serve(t, r.Registry, 0, minutes).answers(context.WithoutCancel(t.Context()), "/a", http.StatusOK, "")
				})
				t.Cleanup(serving.Wait)
				time.Sleep(time.Millisecond)
			},
			path: "/b", status: http.StatusServiceUnavailable, err: sqllock.ErrCapacity,
		},
		"a bad key":     {prepare: nothing, path: "/%ff", status: http.StatusBadRequest, err: sqllock.ErrInvalid},
		"negative wait": {prepare: nothing, path: "/a", wait: -1, status: http.StatusInternalServerError, err: sqllock.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := sqllocktest.New(t, &test.of)
				test.prepare(t, r)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				s := serve(t, r.Registry, test.wait, func(http.ResponseWriter, *http.Request) { t.Error("served") })
				s.answers(ctx, test.path, test.status, "")
				if len(s.errs) != 1 || !errors.Is(s.errs[0], test.err) {
					t.Errorf("%v, want %v", s.errs, test.err)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		r := sqllocktest.New(t, nil)
		for _, middleware := range []func(http.Handler) http.Handler{
			httplock.New(nil, func(*http.Request) string { return "a" }, nil), httplock.New(r.Registry, nil, nil),
		} {
			s := &server{T: t, Handler: middleware(http.HandlerFunc(ok))}
			s.answers(t.Context(), "/a", http.StatusInternalServerError, "")
		}
	})
}
