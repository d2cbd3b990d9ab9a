#!/usr/bin/env bash
# golang-migrate 4.20.1 (Go), migrate.New() and Up() with LockTimeout, over PostgreSQL 18.6 (lib/pq 1.10.9) and MariaDB 10.11.5.
#
# Expected: an instance that starts while another migrates fails when LockTimeout is over, 15 seconds if nothing is said: it
# is "the max time a database driver has to acquire a lock".
# Seen: opening the database takes the same lock, for the table of versions, and knows nothing of LockTimeout. On PostgreSQL
# New() waits for as long as the other instance migrates, whatever the timeout; on MariaDB it fails after ten seconds, even if the
# timeout is a minute, and not with ErrLockTimeout. So LockTimeout is not reached before the other instance is done.
. "$(dirname "$0")/common.sh"

postgres_18
mariadb_server 10.11.5
cat >go.mod <<'MOD'
module finding

go 1.25.0

require (
	github.com/golang-migrate/migrate/v4 v4.20.1
	github.com/lib/pq v1.10.9
)
MOD
cat >main.go <<'GO'
package main

import (
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	_ "github.com/golang-migrate/migrate/v4/database/mysql"
	_ "github.com/golang-migrate/migrate/v4/database/postgres"
	_ "github.com/golang-migrate/migrate/v4/source/file"
)

func trial(name, dsn, migration string, timeout time.Duration) {
	folder := "migrations-" + name
	if err := os.Mkdir(folder, 0o755); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(folder+"/1_slow.up.sql", []byte(migration), 0o644); err != nil {
		log.Fatal(err)
	}
	migrate.DefaultLockTimeout = timeout
	first, err := migrate.New("file://"+folder, dsn)
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- first.Up() }()
	time.Sleep(2 * time.Second) // the migration has begun
	start := time.Now()
	_, err = migrate.New("file://"+folder, dsn)
	waited := time.Since(start).Round(time.Second)
	select {
	case <-done:
		fmt.Printf("%s, timeout %v: New() has waited until the other instance was done, more than 15 s: %v, error: %v\n",
			name, timeout, waited > 15*time.Second, err)
	case <-time.After(5 * time.Second):
		fmt.Printf("%s, timeout %v: New() fails after about 10 s: %v, ErrLocked: %v, ErrLockTimeout: %v\n", name, timeout,
			waited >= 9*time.Second && waited < 20*time.Second, errors.Is(err, database.ErrLocked), errors.Is(err, migrate.ErrLockTimeout))
		<-done
	}
}

func main() {
	trial("PostgreSQL", os.Getenv("PGURL"), "SELECT pg_sleep(25)", 2*time.Second)
	trial("MariaDB", "mysql://root@tcp(127.0.0.1:"+os.Getenv("MARIADB_PORT")+")/test", "DO SLEEP(40)", time.Minute)
}
GO
GOFLAGS=-mod=mod go mod tidy 2>go.log || { cat go.log; exit 1; }
CGO_ENABLED=0 go build -o trial .
PGURL=$PGURL MARIADB_PORT=$MARIADB_PORT timeout 200 ./trial >seen
compare seen <<'EXPECTED'
PostgreSQL, timeout 2s: New() has waited until the other instance was done, more than 15 s: true, error: <nil>
MariaDB, timeout 1m0s: New() fails after about 10 s: true, ErrLocked: true, ErrLockTimeout: false
EXPECTED
