package proxy_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/sqllock/sqllock/dev/bench/internal/proxy"
)

// echo answers what it is sent.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return listener.Addr().String()
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func ask(t *testing.T, conn net.Conn) {
	t.Helper()
	if _, err := conn.Write([]byte("?")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

func TestSlow(t *testing.T) {
	t.Parallel()
	const delay = 30 * time.Millisecond
	slow, err := proxy.NewSlow(echo(t), delay)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	conn := dial(t, slow.Address)
	began := time.Now()
	ask(t, conn)
	if took := time.Since(began); took < delay {
		t.Errorf("took %v", took)
	}
}
