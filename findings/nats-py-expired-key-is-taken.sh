#!/usr/bin/env bash
# nats-py 2.16.0 (Python) with nats-server 2.15.3: a key of a JetStream key-value bucket as a lock with a time-to-live.
#
# Expected: after the time-to-live of the key, get raises KeyNotFoundError and create gets it: "create will add the key/value pair
# iff it does not exist", says its documentation.
# Seen: the server puts a marker in the place of an expired key, for as long as limit_marker_ttl says, without which a bucket has no
# keys with a time-to-live. nats-py takes the marker for the key: get returns an entry without a value, and create is refused
# until the marker is gone. So the lock of a holder that has crashed stays for longer by limit_marker_ttl. nats.go 1.55.0 gets the key.
# (nats.py issue 966 is the same of watch, where it has been mended.)
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
// With a directory, it is a server. With a URL, it creates the key.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
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
	if strings.HasPrefix(os.Args[1], "nats:") {
		ctx := context.Background()
		locks := must(must(jetstream.New(must(nats.Connect(os.Args[1])))).KeyValue(ctx, "locks"))
		must(locks.Create(ctx, os.Args[2], []byte("next"), jetstream.KeyTTL(time.Minute)))
		fmt.Println("nats.go: create gets the key")
		return
	}
	s := must(server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: os.Args[1], NoLog: true}))
	s.Start()
	if !s.ReadyForConnections(20 * time.Second) {
		log.Fatal("the server does not start")
	}
	fmt.Println(s.ClientURL())
	select {}
}
GO
GOFLAGS=-mod=mod go mod tidy 2>go.log || { cat go.log; exit 1; }
CGO_ENABLED=0 go build -o nats .
./nats "$work/store" >url &
servers+=($!)
until_ready grep nats: url

python_packages nats-py==2.16.0
cat >trial.py <<'PY'
import asyncio
import subprocess
import sys
import time

import nats
from nats.js.api import KeyValueConfig
from nats.js.errors import KeyNotFoundError, KeyWrongLastSequenceError

TTL, MARKER = 2, 20  # seconds


async def main():
    client = await nats.connect(sys.argv[1])
    locks = await client.jetstream().create_key_value(config=KeyValueConfig(bucket="locks", limit_marker_ttl=MARKER))
    for key in "job", "other":
        await locks.create(key, b"holder", msg_ttl=TTL)
    await asyncio.sleep(2 * TTL)
    print("after twice the time-to-live:")
    print("get returns a value:", (await locks.get("job")).value)
    try:
        await locks.create("job", b"next", msg_ttl=TTL)
        print("create gets the key")
    except KeyWrongLastSequenceError:
        print("create is refused")
    print(subprocess.run(["./nats", sys.argv[1], "other"], capture_output=True, text=True, check=True).stdout.strip())
    await asyncio.sleep(2 * MARKER)
    print("after the marker's:")
    try:
        await locks.get("job")
    except KeyNotFoundError:
        print("get raises KeyNotFoundError")
    await locks.create("job", b"next", msg_ttl=TTL)
    print("create gets the key")
    await client.close()


asyncio.run(main())
PY
timeout 120 venv/bin/python trial.py "$(cat url)" >seen
compare seen <<'EXPECTED'
after twice the time-to-live:
get returns a value: None
create is refused
nats.go: create gets the key
after the marker's:
get raises KeyNotFoundError
create gets the key
EXPECTED
