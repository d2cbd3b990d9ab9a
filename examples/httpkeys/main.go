// Command httpkeys has two servers serve the requests of one order one at a time, over both of them.
//
//	go run ./httpkeys
//
// It prints:
//
//	order 42: version 40
//	order 43: version 40
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/adapters/httplock"
	"github.com/sqllock/sqllock/drivers/sqlitelock"
)

// handler has the lock of an order around what changes it. A request waits for its turn; without
// Wait it would be answered with 423 Locked and Retry-After.
func handler(registry *sqllock.Registry, orders string) http.Handler {
	perOrder := httplock.New(registry, func(r *http.Request) string { return "orders/" + r.PathValue("id") }, &httplock.Options{
		Wait:    time.Minute,
		OnError: func(r *http.Request, err error) { log.Print(r.URL.Path, ": ", err) },
	})
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}", perOrder(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		version, err := change(filepath.Join(orders, r.PathValue("id")))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, version)
	})))
	return mux
}

// change reads the version of an order and writes the next. Without a lock, two requests could write
// the same one.
func change(path string) (version int, err error) {
	if text, err := os.ReadFile(path); err == nil {
		if version, err = strconv.Atoi(string(text)); err != nil {
			return 0, err
		}
	}
	version++
	return version, os.WriteFile(path, []byte(strconv.Itoa(version)), 0o600)
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "sqllock")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	answered := make(chan error)
	for range 2 { // two processes
		registry, err := sqlitelock.Open(ctx, filepath.Join(dir, "locks.db"), nil)
		if err != nil {
			return err
		}
		defer registry.Close(ctx)
		server := httptest.NewServer(handler(registry, dir))
		defer server.Close()
		for i := range 40 {
			go func() { answered <- post(server.URL + "/orders/" + strconv.Itoa(42+i%2)) }()
		}
	}
	for range 80 {
		err = errors.Join(err, <-answered)
	}
	for _, id := range []string{"42", "43"} {
		version, readError := os.ReadFile(filepath.Join(dir, id))
		err = errors.Join(err, readError)
		fmt.Printf("order %s: version %s\n", id, version)
	}
	return err
}

func post(url string) error {
	response, err := http.Post(url, "text/plain", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		err = errors.Join(err, fmt.Errorf("%s: %s", response.Status, body))
	}
	return err
}
