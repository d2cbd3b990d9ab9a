// Command leader has three servers elect a leader. A server that does not lead forwards requests to
// the one that does.
//
//	go run ./leader
//
// It prints:
//
//	server 1: answered by the leader
//	server 2: answered by the leader
//	server 3: answered by the leader
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/drivers/sqlitelock"
	"github.com/sqllock/sqllock/sync/leader"
)

// forward answers requests on the leader, and forwards them to it elsewhere.
func forward(elector *leader.Elector, answer http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var not *leader.NotLeaderError
		err := elector.IsLeader(r.Context()) // does not ask the database
		if err == nil {
			answer.ServeHTTP(w, r)
			return
		}
		// The client id of the leader's repository is its address. A request that was forwarded is
		// not forwarded again: the leader may have changed meanwhile.
		if !errors.As(err, &not) || not.Leader.Client == "" || r.Header.Get("X-Forwarded-For") != "" {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "no leader", http.StatusServiceUnavailable)
			return
		}
		proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(&url.URL{Scheme: "http", Host: not.Leader.Client})
			p.SetXForwarded()
		}}
		proxy.ServeHTTP(w, r)
	})
}

// serve runs a server until ctx ends. Its address is its client id, so that others find it.
func serve(ctx context.Context, file string, listener net.Listener) error {
	registry, err := sqlitelock.Open(ctx, file, &sqlitelock.Options{
		Repository: sqllock.RepositoryOptions{ClientID: listener.Addr().String()},
	})
	if err != nil {
		return err
	}
	defer registry.Close(context.WithoutCancel(ctx))
	elector, err := leader.New(registry, "orders", nil)
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second}
	server.Handler = forward(elector, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "answered by the leader")
	}))
	go server.Serve(listener)
	defer server.Close()
	return elector.Run(ctx, func(ctx context.Context, _ *sqllock.Lease) error {
		<-ctx.Done() // what a leader does all the time stands here
		return ctx.Err()
	})
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "sqllock")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 3)
	var addresses []string
	for range 3 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		addresses = append(addresses, listener.Addr().String())
		go func() { ended <- serve(ctx, filepath.Join(dir, "locks.db"), listener) }()
	}
	for i, address := range addresses {
		answer, err := ask("http://" + address)
		if err != nil {
			return err
		}
		fmt.Printf("server %d: %s\n", i+1, answer)
	}
	cancel()
	for range addresses {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return nil
}

// ask asks a server until there is a leader.
func ask(address string) (string, error) {
	for {
		response, err := http.Get(address)
		if err != nil {
			return "", err
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode == http.StatusOK {
			return string(body), err
		}
		time.Sleep(50 * time.Millisecond)
	}
}
