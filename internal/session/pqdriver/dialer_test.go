package pqdriver

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

// A server that is silent ends a read, after patience or at the deadline of the connection's user.
func TestASilentServer(t *testing.T) {
	t.Parallel()
	listener := check.Value(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	for name, patience := range map[string]time.Duration{"patience": time.Millisecond, "deadline": time.Hour} {
		c := check.Value(dialer{patience: patience}.DialContext(t.Context(), "tcp", listener.Addr().String()))(t)
		defer c.Close()
		if name == "deadline" {
			// real time: the server is silent, so its end comes, however late
			check.Must(t, c.SetDeadline(time.Now().Add(time.Millisecond)))
		}
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: error %v", name, err)
		}
		if err := c.SetDeadline(time.Time{}); err != nil { // patience counts again
			t.Fatal(err)
		}
		if c.(*connection).dated { //nolint:forcetypeassert // it is one
			t.Errorf("%s: there is no deadline any more", name)
		}
	}
}
