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
	listener := check.Value((&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0"))(t)
	defer listener.Close()
	go func() {
		if conn, err := listener.Accept(); err == nil {
			defer conn.Close()
			_, _ = io.Copy(conn, conn)
		}
	}()
	const delay = 30 * time.Millisecond
	slow := check.Value(slowly(listener.Addr().String(), delay))(t)
	defer slow.Stop()
	conn := check.Value((&net.Dialer{}).DialContext(t.Context(), "tcp", slow.Listen))(t)
	defer conn.Close()
	began := time.Now()
	check.Must(t, check.ErrorOf(conn.Write([]byte("?"))))
	check.Must(t, check.ErrorOf(io.ReadFull(conn, make([]byte, 1))))
	if took := time.Since(began); took < delay {
		t.Errorf("took %v", took)
	}
}
