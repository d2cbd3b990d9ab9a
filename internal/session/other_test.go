package session_test

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/session/mysqldriver"
	"github.com/sqllock/sqllock/internal/session/pgxdriver"
	"github.com/sqllock/sqllock/internal/session/pqdriver"
	"github.com/sqllock/sqllock/internal/test/check"
)

// serve has talk speak on each connection, and returns the address.
func serve(t *testing.T, talk func(net.Conn)) string {
	t.Helper()
	listener := check.Value(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	var conns sync.WaitGroup
	t.Cleanup(func() {
		check.Must(t, listener.Close())
		conns.Wait()
	})
	conns.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				talk(conn)
				_, _ = io.Copy(io.Discard, conn) // until the client closes it
				_ = conn.Close()
			})
		}
	})
	return listener.Addr().String()
}

// Where the server of another database answers, the error says so, and is no outage. What else answers is one.
func TestAnotherServer(t *testing.T) {
	t.Parallel()
	mysql := func(conn net.Conn) { _, _ = conn.Write([]byte("\x4a\x00\x00\x00\x0a8.4.0\x00")) }
	full := func(conn net.Conn) { _, _ = conn.Write([]byte("\x17\x00\x00\x00\xff\x10\x04Too many connections")) }
	ssh := func(conn net.Conn) { _, _ = conn.Write([]byte("SSH-2.0-OpenSSH_9.2\r\n")) }
	postgres := func(conn net.Conn) {
		request := make([]byte, 8)
		if n, _ := io.ReadFull(conn, request); n == 8 && string(request[4:]) == "\x04\xd2\x16\x2f" {
			_, _ = conn.Write([]byte("N"))
		}
	}
	for name, c := range map[string]struct {
		talk   func(net.Conn)
		parse  func(string) (session.Target, error)
		scheme string
		want   string // in the text of an ErrInvalid; "" for another error
	}{
		"lib/pq at MySQL":             {mysql, pqdriver.Parse, "postgres", "is MySQL or MariaDB, and the DSN is for PostgreSQL"},
		"pgx at MySQL":                {mysql, pgxdriver.Parse, "postgres", "is MySQL or MariaDB, and the DSN is for PostgreSQL"},
		"pgx at a MySQL that is full": {full, pgxdriver.Parse, "postgres", "is MySQL or MariaDB, and the DSN is for PostgreSQL"},
		"MySQL at PostgreSQL":         {postgres, mysqldriver.Parse, "mysql", "is PostgreSQL, and the DSN is for MySQL or MariaDB"},
		"pgx at SSH":                  {ssh, pgxdriver.Parse, "postgres", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := serve(t, c.talk)
			target := check.Value(c.parse(c.scheme + "://u:p@" + address + "/db"))(t)
			pools, err := target.Connect(t.Context(), session.Need{Connections: 1})
			switch {
			case err == nil:
				t.Errorf("connected: %v", pools.Close())
			case c.want == "" && errors.Is(err, sqllock.ErrInvalid):
				t.Error(err)
			case c.want != "":
				check.Is(t, err, sqllock.ErrInvalid)
				check.Contains(t, err.Error(), address+" "+c.want)
			}
		})
	}
}
