package page

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

// status returns the status of a request for a host.
func status(t *testing.T, s *webServer, host string) int {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Host = host
	w := httptest.NewRecorder()
	s.server.Handler.ServeHTTP(w, r)
	return w.Code
}

func TestServer(t *testing.T) {
	t.Parallel()
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	s := check.Value(listen(t.Context(), "127.0.0.1:0", ok))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := check.Begin(func() error { return s.Run(ctx) })
	for host, want := range map[string]int{
		"localhost:1": http.StatusOK, "127.0.0.1": http.StatusOK, "[::1]:8080": http.StatusOK, "[::1]": http.StatusOK,
		"rebound.example:8080": http.StatusMisdirectedRequest, "192.0.2.1": http.StatusMisdirectedRequest,
	} {
		check.Equal(t, "status for "+host, status(t, s, host), want)
	}
	if _, err := listen(t.Context(), s.listener.Addr().String(), ok); exit.CodeOf(err) != exit.Usage || exit.Hint(err) == "" || !strings.HasPrefix(err.Error(), "listen tcp ") {
		t.Errorf("a port in use: %v", err)
	}
	cancel()
	check.Is(t, <-ended, nil)

	for _, bad := range []string{"", "locks.example:80", "http://locks.example", "*.example"} {
		if _, err := listen(t.Context(), "127.0.0.1:0", ok, bad); exit.CodeOf(err) != exit.Usage {
			t.Errorf("host %q: %v", bad, err)
		}
	}
	s = check.Value(listen(t.Context(), "0.0.0.0:0", ok, "locks.example"))(t)
	for host, want := range map[string]int{
		"localhost:1": http.StatusOK, "192.0.2.1:80": http.StatusOK, "[2001:db8::1]:80": http.StatusOK, "LOCKS.example:80": http.StatusOK,
		"rebound.example": http.StatusMisdirectedRequest, "evil.locks.example": http.StatusMisdirectedRequest,
	} {
		check.Equal(t, "status for "+host, status(t, s, host), want)
	}
	if s.IsLocal() || s.Close() != nil {
		t.Errorf("%s is taken for a local address", s.URL())
	}
	if err := s.Run(t.Context()); err == nil || errors.Is(err, http.ErrServerClosed) {
		t.Errorf("a closed listener: %v", err)
	}
}
