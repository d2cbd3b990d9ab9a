package session

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/sqltext"
)

const (
	// lookAfter is how long a first connection may take before it is asked what the server is: a driver of MySQL waits for a
	// greeting, which PostgreSQL does not send.
	lookAfter = time.Second
	// greetingTime is how long the greeting of a MySQL is waited for, and answerTime how long the answer of a PostgreSQL.
	greetingTime, answerTime = 300 * time.Millisecond, time.Second
)

// pingServer is ping, and returns a [failure.ErrInvalid] if the server is that of another database.
func (t Target) pingServer(ctx context.Context, db *sqlx.DB) error {
	if t.Address == "" {
		return t.ping(ctx, db)
	}
	pinging, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var looking sync.WaitGroup
	looking.Add(1)
	look := time.AfterFunc(lookAfter, func() {
		defer looking.Done()
		if other := t.otherServer(pinging); other != nil {
			cancel(other)
		}
	})
	err := t.ping(pinging, db)
	if look.Stop() { // a driver of MySQL that has an answer so soon has that of a MySQL, which counts connections without a login
		if err == nil || sqltext.Of(t.Dialect).Name != sqltext.Postgres().Name || isOfServer(err) {
			return err
		}
		return cmp.Or(t.otherServer(ctx), err)
	}
	if err == nil {
		cancel(nil)
	}
	looking.Wait()
	if other := context.Cause(pinging); err != nil && errors.Is(other, failure.ErrInvalid) {
		return other
	}
	return err
}

// isOfServer reports whether an error is what a PostgreSQL has said, or that there is no server.
func isOfServer(err error) bool {
	var state interface{ SQLState() string }
	var dial *net.OpError
	return errors.As(err, &state) || errors.As(err, &dial) && dial.Op == "dial"
}

// otherServer returns an error if the server is that of another database.
func (t Target) otherServer(ctx context.Context) error {
	own := sqltext.Of(t.Dialect).Name
	switch found := serverAt(ctx, t.Address); {
	case found == mysqlServer && own == sqltext.Postgres().Name, found == postgresServer && own == sqltext.MySQL().Name:
		return failure.Invalid("what answers at %s is %s, and the DSN is for %s: correct its port, or its form", t.Address, found,
			map[string]string{sqltext.Postgres().Name: postgresServer, sqltext.MySQL().Name: mysqlServer}[own])
	default:
		return nil
	}
}

const mysqlServer, postgresServer = "MySQL or MariaDB", "PostgreSQL"

// askTLS is SSLRequest of PostgreSQL's protocol, which a server answers with a single byte: S or N.
var askTLS = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 8), 80877103)

// serverAt returns what answers at an address, or "" if that is not known. MySQL speaks first: its packet has a length, the
// number 0, and a version of the protocol, or 0xff for an error.
func serverAt(ctx context.Context, address string) string {
	ctx, cancel := context.WithTimeout(ctx, greetingTime+answerTime)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return ""
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer func() { stop(); _ = conn.Close() }() // nothing was written that matters
	const first = 5
	packet := make([]byte, first)
	_ = conn.SetReadDeadline(time.Now().Add(greetingTime)) // on a connection that is open
	n, err := io.ReadFull(conn, packet)
	switch {
	case n == first && packet[3] == 0 && (packet[4] == 10 || packet[4] == 0xff):
		return mysqlServer
	case n > 0 || !isTimeout(err) || ctx.Err() != nil:
		return ""
	}
	_ = conn.SetReadDeadline(time.Now().Add(answerTime)) // likewise
	if _, err := conn.Write(askTLS); err != nil {
		return ""
	}
	if n, _ := conn.Read(packet); n == 1 && (packet[0] == 'S' || packet[0] == 'N') {
		return postgresServer
	}
	return ""
}

func isTimeout(err error) bool {
	var network net.Error
	return errors.As(err, &network) && network.Timeout()
}
