#!/usr/bin/env bash
# nats.go 1.55.0 with nats-server 2.15.3: a key of a JetStream key-value bucket as a lock with a time-to-live.
#
# Expected: Update, the heartbeat of the holder, starts the key's time-to-live anew: "Update also resets the TTL
# associated with the key (if any)", says its documentation.
# Seen: Update removes the time-to-live. The key of a holder that has crashed after one renewal stays for ever, and Create
# is refused to all others. (Known to the project as nats.go issue 1994; the sentence of the documentation stands.)
. "$(dirname "$0")/common.sh"

cat >go.mod <<'MOD'
module finding

go 1.25.0

require (
	github.com/nats-io/nats-server/v2 v2.15.3
	github.com/nats-io/nats.go v1.55.0
)
MOD
cat >main.go <<'GO'
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	s := must(server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: os.Args[1], NoSigs: true, NoLog: true}))
	go s.Start()
	if !s.ReadyForConnections(20 * time.Second) {
		log.Fatal("the server does not start")
	}
	js := must(jetstream.New(must(nats.Connect(s.ClientURL()))))
	ctx := context.Background()
	locks := must(js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "locks", LimitMarkerTTL: time.Minute}))
	ttl := jetstream.KeyTTL(2 * time.Second)

	must(locks.Create(ctx, "crashed", []byte("holder"), ttl))
	revision := must(locks.Create(ctx, "renewed-and-crashed", []byte("holder"), ttl))
	must(locks.Update(ctx, "renewed-and-crashed", []byte("holder"), revision))
	time.Sleep(10 * time.Second)
	for _, key := range []string{"crashed", "renewed-and-crashed"} {
		_, err := locks.Create(ctx, key, []byte("next"), ttl)
		fmt.Printf("%s, 10 s later: the next holder is refused: %v\n", key, errors.Is(err, jetstream.ErrKeyExists))
	}
}
GO
GOFLAGS=-mod=mod go mod tidy 2>go.log || { cat go.log; exit 1; }
CGO_ENABLED=0 go run . "$work/store" >seen
compare seen <<'EXPECTED'
crashed, 10 s later: the next holder is refused: false
renewed-and-crashed, 10 s later: the next holder is refused: true
EXPECTED
