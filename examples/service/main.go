// Command service is a small bank, a web service of which several instances run over one database:
//
//   - a transfer commits under the locks of its two accounts, or not at all (bank.go),
//   - a nightly job succeeds on one of the instances (nightly.go),
//   - operators see the locks on a page, and their metrics (web.go),
//   - SIGTERM finishes the requests and releases the locks (serve and run, below).
//
// Its settings are environment variables:
//
//	LISTEN             the address to listen on; default 127.0.0.1:8081
//	DATABASE_URL       postgres://…, or sqlite: and a file; default sqlite:bank.db
//	OPERATOR_PASSWORD  of the pages under /internal/, which stay closed without one
package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/drivers/pgxlock"
	"github.com/sqllock/sqllock/drivers/sqlitelock"
	"github.com/sqllock/sqllock/migrations"
	"github.com/sqllock/sqllock/observe"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:8081"))
	if err != nil {
		log.Fatal(err)
	}
	if err := run(ctx, listener, cmp.Or(os.Getenv("DATABASE_URL"), "sqlite:bank.db"), os.Getenv("OPERATOR_PASSWORD")); err != nil {
		log.Fatal(err)
	}
}

// run opens the database, serves until ctx ends, and releases the locks.
func run(ctx context.Context, listener net.Listener, dsn, password string) (err error) {
	db, err := openDatabase(dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	watch := newWatch()
	registry, err := openLocks(ctx, dsn, watch.observers())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, registry.Close(context.WithoutCancel(ctx))) }() // ctx has ended by then
	if err := createTables(ctx, db, registry); err != nil {
		return err
	}
	return serve(ctx, listener, &bank{db: db, registry: registry}, watch, password)
}

// serve answers requests and runs the nightly job until ctx ends. Then it finishes the requests.
func serve(ctx context.Context, listener net.Listener, bank *bank, watch *watch, password string) error {
	closing := bank.closing()
	working, stop := context.WithCancel(ctx)
	defer stop()
	var jobs sync.WaitGroup
	jobs.Go(func() { nightly(working, closing) })

	server := &http.Server{Handler: handler(bank, closing, watch, password), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	slog.InfoContext(ctx, "serving", "address", listener.Addr())
	var err error
	select {
	case err = <-served: // it cannot accept connections any more
	case <-ctx.Done():
	}
	slog.InfoContext(ctx, "stopping")

	stop() // rolls a running job back: the next call of another instance runs it
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err = errors.Join(err, server.Shutdown(ending)) // a request that takes longer loses its locks, and commits nothing
	jobs.Wait()
	return err
}

// openDatabase opens the pool of the application.
func openDatabase(dsn string) (*sql.DB, error) {
	if file, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		return sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_txlock=immediate")
	}
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	// An instance that is stopped in the middle of a transfer would keep its accounts locked until it goes on.
	config.RuntimeParams["idle_in_transaction_session_timeout"] = "10000"
	return stdlib.OpenDB(*config), nil
}

// openLocks opens the locks in the same database. They have a small pool of their own: requests that use up the
// application's cannot keep leases from being renewed.
func openLocks(ctx context.Context, dsn string, observers []*observe.Observer) (*sqllock.Registry, error) {
	repository := sqllock.RepositoryOptions{Observers: observers}
	if file, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		return sqlitelock.Open(ctx, file, &sqlitelock.Options{Repository: repository})
	}
	return pgxlock.Open(ctx, dsn, &pgxlock.Options{Repository: repository, Migrate: migrations.Up})
}
