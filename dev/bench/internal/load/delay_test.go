package load

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/test/check"
)

// TestSlowly has the proxy delay the answer of a server that echoes.
func TestSlowly(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	check.Must(t, err)
	defer listener.Close()
	go func() {
		if conn, err := listener.Accept(); err == nil {
			defer conn.Close()
			_, _ = io.Copy(conn, conn)
		}
	}()
	const delay = 30 * time.Millisecond
	slow, err := slowly(listener.Addr().String(), delay)
	check.Must(t, err)
	defer slow.Stop()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", slow.Listen)
	check.Must(t, err)
	defer conn.Close()
	began := time.Now()
	_, err = conn.Write([]byte("?"))
	check.Must(t, err)
	_, err = io.ReadFull(conn, make([]byte, 1))
	check.Must(t, err)
	if took := time.Since(began); took < delay {
		t.Errorf("took %v", took)
	}
}
