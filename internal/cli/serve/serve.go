// Package serve runs a web server until a command is interrupted.
package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/sqllock/sqllock/internal/cli/exit"
)

// Loopback is the address at which commands listen unless they are told otherwise: only this
// machine reaches it. Port 0 is a free one.
const Loopback = "127.0.0.1:8080"

// Time limits of the server.
const (
	headerTimeout   = 10 * time.Second
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 3 * time.Second
)

// A Server is a server that listens.
type Server struct {
	listener net.Listener
	server   *http.Server
}

// Listen listens at an address, HOST:PORT. At a loopback address, requests for other hosts are
// refused: a site whose name leads to this machine must not read what it serves.
func Listen(ctx context.Context, address string, handler http.Handler) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, exit.WithHint(exit.Usagef("listen: %w", err), "--listen 127.0.0.1:0, for a free port")
	}
	s := &Server{listener: listener}
	if s.IsLocal() {
		handler = onlyLocal(handler)
	}
	s.server = &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout}
	return s, nil
}

// URL returns the address for a browser.
func (s *Server) URL() string {
	host, port, _ := net.SplitHostPort(s.listener.Addr().String()) // it is an address
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return fmt.Sprintf("http://%s/", net.JoinHostPort(host, port))
}

// IsLocal reports whether only this machine reaches the server.
func (s *Server) IsLocal() bool { return isLocal(s.listener.Addr().String()) }

// Run serves until ctx ends, and then for a moment the requests that are under way. It closes the
// listener.
func (s *Server) Run(ctx context.Context) error {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if s.server.Shutdown(limited) != nil {
			_ = s.server.Close()
		}
	}()
	err := s.server.Serve(s.listener)
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	<-stopped
	return nil
}

// onlyLocal refuses requests for hosts other than this machine.
func onlyLocal(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLocal(r.Host) {
			http.Error(w, "this server is for this machine alone", http.StatusMisdirectedRequest)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// isLocal reports whether a host, with or without a port, is this machine under a name that no
// other site can have.
func isLocal(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil { // there is no port
		host = strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
