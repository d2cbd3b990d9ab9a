package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/drivers/sqlitelock"
	"github.com/sqllock/sqllock/sqllocktest"
)

// The tests need no server: sqllocktest gives each a database in memory, and a registry for each instance. In a bubble
// of synctest the time of leases and waits is virtual.

const password = "secret"

// instance returns an instance of the service on the database of the test.
func instance(t *testing.T, locks *sqllocktest.Registry, registry *sqllock.Registry) (*bank, http.Handler) {
	t.Helper()
	if err := createTables(t.Context(), locks.DB(), registry); err != nil {
		t.Fatal(err)
	}
	b := &bank{db: locks.DB(), registry: registry}
	return b, handler(b, b.closing(), newWatch(), password)
}

// status sends a request of an operator, and returns the status of the answer.
func status(t *testing.T, h http.Handler, method, path, body string) int {
	t.Helper()
	return statusFor(t, h, password, method, path, body)
}

func statusFor(t *testing.T, h http.Handler, password, method, path, body string) int {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	request.SetBasicAuth("operator", password)
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, request)
	return answer.Code
}

func wantStatus(t *testing.T, h http.Handler, method, path, body string, want int) {
	t.Helper()
	if got := status(t, h, method, path, body); got != want {
		t.Errorf("%s %s %s: %d, want %d", method, path, body, got, want)
	}
}

func wantBalances(t *testing.T, db *sql.DB, want ...int64) {
	t.Helper()
	for i, want := range want {
		if got, err := balanceOf(t.Context(), db, int64(i+1)); err != nil || got != want {
			t.Errorf("account %d has %d, %v; want %d", i+1, got, err, want)
		}
	}
}

func execute(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func TestTransfer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := sqllocktest.New(t, nil)
		_, h := instance(t, locks, locks.Registry)
		wantStatus(t, h, "PUT", "/transfers/a", `{"from": 1, "to": 2, "amount": 30}`, http.StatusNoContent)
		wantStatus(t, h, "PUT", "/transfers/a", `{"from": 1, "to": 2, "amount": 30}`, http.StatusNoContent) // again: made once
		wantStatus(t, h, "PUT", "/transfers/b", `{"from": 1, "to": 2, "amount": 71}`, http.StatusConflict)
		wantStatus(t, h, "PUT", "/transfers/c", `{"from": 1, "to": 9, "amount": 1}`, http.StatusNotFound)
		wantStatus(t, h, "PUT", "/transfers/d", `{"from": 1, "to": 1, "amount": 1}`, http.StatusBadRequest)
		wantStatus(t, h, "PUT", "/transfers/e", `{"from": 1, "to": 2, "amount": -1}`, http.StatusBadRequest)
		wantBalances(t, locks.DB(), 70, 130, 100)
		wantStatus(t, h, "GET", "/accounts/1", "", http.StatusOK)
		wantStatus(t, h, "GET", "/accounts/x", "", http.StatusNotFound)
	})
}

func TestTransfersOfSeveralInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := sqllocktest.New(t, nil)
		var clients sync.WaitGroup
		for i, registry := range []*sqllock.Registry{locks.Registry, locks.Another(), locks.Another()} {
			_, h := instance(t, locks, registry)
			for j := range 10 {
				clients.Go(func() {
					path := fmt.Sprintf("/transfers/%d-%d", i, j)
					for status(t, h, "PUT", path, `{"from": 1, "to": 2, "amount": 4}`) == http.StatusLocked {
						time.Sleep(time.Second)
					}
				})
			}
		}
		clients.Wait()
		wantBalances(t, locks.DB(), 0, 200) // 25 of the 30: then there is no money left
	})
}

func TestTransferOfALockedAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := sqllocktest.New(t, nil)
		_, h := instance(t, locks, locks.Registry)
		lease, err := locks.Another().Lock(t.Context(), "account/2")
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, h, "PUT", "/transfers/a", `{"from": 1, "to": 2, "amount": 30}`, http.StatusLocked) // after five seconds
		wantStatus(t, h, "PUT", "/transfers/b", `{"from": 1, "to": 3, "amount": 30}`, http.StatusNoContent)
		if err := lease.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, h, "PUT", "/transfers/a", `{"from": 1, "to": 2, "amount": 30}`, http.StatusNoContent)
		wantBalances(t, locks.DB(), 40, 130, 130)
	})
}

func TestTransferInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := sqllocktest.New(t, nil)
		_, h := instance(t, locks, locks.Registry)
		locks.Break(errors.New("the server is down"))
		wantStatus(t, h, "PUT", "/transfers/a", `{"from": 1, "to": 2, "amount": 30}`, http.StatusServiceUnavailable)
		locks.Break(nil)
		wantStatus(t, h, "PUT", "/transfers/a", `{"from": 1, "to": 2, "amount": 30}`, http.StatusNoContent)
		wantBalances(t, locks.DB(), 70, 130)
	})
}

// TestNightly: three instances call the job in three nights. An operator has run it in the evening before, and the
// first calls of the second night fail.
func TestNightly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := sqllocktest.New(t, nil)
		today := time.Now() // in the bubble
		time.Sleep(time.Until(time.Date(today.Year(), today.Month(), today.Day(), 23, 30, 0, 0, time.Local)))
		ctx, stop := context.WithCancel(t.Context())
		var instances sync.WaitGroup
		for _, registry := range []*sqllock.Registry{locks.Registry, locks.Another(), locks.Another()} {
			b, h := instance(t, locks, registry)
			closing := b.closing()
			instances.Go(func() { nightly(ctx, closing) })
			if registry == locks.Registry {
				wantStatus(t, h, "POST", "/internal/closing", "", http.StatusNoContent)
			} else {
				wantStatus(t, h, "POST", "/internal/closing", "", http.StatusConflict) // it has run
			}
		}
		time.Sleep(27 * time.Hour) // half past two, in the second night
		execute(t, locks.DB(), "ALTER TABLE closing RENAME TO renamed")
		time.Sleep(time.Hour)
		execute(t, locks.DB(), "ALTER TABLE renamed RENAME TO closing")
		time.Sleep(24 * time.Hour)
		stop()
		instances.Wait()

		var days, total int
		if err := locks.DB().QueryRowContext(t.Context(), "SELECT COUNT(*), SUM(total) FROM closing").Scan(&days, &total); err != nil {
			t.Fatal(err)
		}
		if days != 4 || total != 4*300 {
			t.Errorf("%d closings, together %d", days, total)
		}
	})
}

func TestOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := sqllocktest.New(t, nil)
		b, h := instance(t, locks, locks.Registry)
		without := handler(b, b.closing(), newWatch(), "")
		for _, path := range []string{"/internal/locks/", "/internal/metrics"} {
			wantStatus(t, h, "GET", path, "", http.StatusOK)
			for _, given := range []string{"", "another"} {
				for _, h := range []http.Handler{h, without} {
					if got := statusFor(t, h, given, "GET", path, ""); got != http.StatusUnauthorized {
						t.Errorf("%s with the password %q: %d", path, given, got)
					}
				}
			}
		}
	})
}

// TestShutdown: a request that waits for a lock when the service is stopped is finished.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := sqllocktest.New(t, nil)
		b, _ := instance(t, locks, locks.Registry)
		lease, err := locks.Another().Lock(t.Context(), "account/1")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		listener := make(pipes)
		ended := make(chan error)
		go func() { ended <- serve(ctx, listener, b, newWatch(), password) }()
		answered := make(chan int)
		go func() { answered <- put(t, listener, "/transfers/a", `{"from": 1, "to": 2, "amount": 30}`) }()
		synctest.Wait() // the request waits for the lock
		stop()
		synctest.Wait() // the service waits for the request
		if err := lease.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		if status := <-answered; status != http.StatusNoContent {
			t.Errorf("the request was answered with %d", status)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		wantBalances(t, locks.DB(), 70, 130)
	})
}

// pipes is a listener in memory: a bubble's clock stands still while a goroutine waits for a network.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error {
	close(p)
	return nil
}

func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "in memory", Net: "unix"} }

// put sends a request over a pipe, and returns the status of the answer.
func put(t *testing.T, to pipes, path, body string) int {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		to <- server
		return client, nil
	}}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://service"+path, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Error(err)
		return 0
	}
	answer.Body.Close()
	return answer.StatusCode
}

// TestRun starts three instances at once on one new file. When they have ended, it has no lock.
func TestRun(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "bank.db")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	var addresses []string
	for range 3 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, listener.Addr().String())
		go func() { ended <- run(ctx, listener, "sqlite:"+file, password) }()
	}
	for i, address := range addresses {
		request, err := http.NewRequestWithContext(ctx, http.MethodPut, fmt.Sprintf("http://%s/transfers/%d", address, i), strings.NewReader(`{"from": 1, "to": 2, "amount": 10}`))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusNoContent {
			t.Errorf("instance %d: %s", i, answer.Status)
		}
	}
	stop()
	for range addresses {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	registry, err := sqlitelock.Open(t.Context(), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Close(t.Context())
	if rows, err := registry.Repository().List(t.Context()); err != nil || len(rows) > 0 {
		t.Errorf("locks are left: %v, %v", rows, err)
	}
	db, err := openDatabase("sqlite:" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	wantBalances(t, db, 70, 130)
}
