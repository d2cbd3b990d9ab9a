#!/usr/bin/env bash
# ariga.io/atlas v0.32.1-0.20250325101103-175b25e1c1b9 (Go), the Lock of its SQLite driver, over modernc.org/sqlite 1.40.1.
#
# Expected: the lock is held until it is unlocked, and the timeout says how long the caller waits for it, as the
# documentation of schema.Locker has it: "zero value means a try lock mode", "negative value means no timeout".
# Seen: the timeout is how long the lock lasts. A lock taken with a second is free to others after a second, although its
# holder is still migrating; with zero or a negative timeout it never keeps anyone out. A caller does not wait for a lock either:
# it is refused at once.
. "$(dirname "$0")/common.sh"

cat >go.mod <<'MOD'
module finding

go 1.25.0

require (
	ariga.io/atlas v0.32.1-0.20250325101103-175b25e1c1b9
	modernc.org/sqlite v1.40.1
)
MOD
cat >main.go <<'GO'
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"time"

	"ariga.io/atlas/sql/schema"
	"ariga.io/atlas/sql/sqlite"
	_ "modernc.org/sqlite"
)

// instance is one of two programs that migrate the same database.
func instance() schema.Locker {
	db, err := sql.Open("sqlite", "file:app.db")
	if err != nil {
		log.Fatal(err)
	}
	driver, err := sqlite.Open(db)
	if err != nil {
		log.Fatal(err)
	}
	return driver.(schema.Locker)
}

func main() {
	ctx := context.Background()
	holder, rival := instance(), instance()
	for _, timeout := range []time.Duration{5 * time.Second, time.Second, 0, -1} {
		name := fmt.Sprintf("migrate-%d", timeout)
		if _, err := holder.Lock(ctx, name, timeout); err != nil {
			log.Fatal(err)
		}
		time.Sleep(2 * time.Second) // the migration
		start := time.Now()
		_, err := rival.Lock(ctx, name, timeout)
		outcome := "is refused"
		if err == nil {
			outcome = "acquires it, too"
		}
		fmt.Printf("held for 2 s, timeout %v: a rival %s, having waited: %v\n", timeout, outcome, time.Since(start) > time.Second)
	}
}
GO
mkdir locks
GOFLAGS=-mod=mod go mod tidy 2>go.log || { cat go.log; exit 1; }
CGO_ENABLED=0 go build -o trial .
TMPDIR=$work/locks timeout 120 ./trial >seen
compare seen <<'EXPECTED'
held for 2 s, timeout 5s: a rival is refused, having waited: false
held for 2 s, timeout 1s: a rival acquires it, too, having waited: false
held for 2 s, timeout 0s: a rival acquires it, too, having waited: false
held for 2 s, timeout -1ns: a rival acquires it, too, having waited: false
EXPECTED
