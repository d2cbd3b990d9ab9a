package page

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
)

// loopback is the address at which commands listen unless they are told otherwise: only this
// machine reaches it. Port 0 is a free one.
const loopback = "127.0.0.1:8080"

// Time limits of the server.
const (
	headerTimeout   = 10 * time.Second
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 3 * time.Second
)

// A webServer is a server that listens.
type webServer struct {
	listener net.Listener
	server   *http.Server
}

// listen listens at an address, HOST:PORT. It serves requests for the hosts given, for this machine
// under its own names and, unless the address is a loopback one, for IP addresses. Others are
// refused: a site that lets its name lead to this machine must neither read nor do anything here.
func listen(ctx context.Context, address string, handler http.Handler, hosts ...string) (*webServer, error) {
	for _, host := range hosts {
		if hostOf(host) != host || host == "" || strings.ContainsAny(host, "/*") {
			return nil, exit.Usagef("the host %q: it must be a name or an address, without a port", host)
		}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, exit.WithHint(exit.Usagef("%w", err), "--listen 127.0.0.1:0, for a free port")
	}
	s := &webServer{listener: listener}
	s.server = &http.Server{Handler: s.onlyFor(hosts, handler), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout}
	return s, nil
}

// URL returns the address for a browser.
func (s *webServer) URL() string {
	host, port, _ := net.SplitHostPort(s.listener.Addr().String()) // it is an address
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return fmt.Sprintf("http://%s/", net.JoinHostPort(host, port))
}

// IsLocal reports whether only this machine reaches the server.
func (s *webServer) IsLocal() bool { return isLocal(hostOf(s.listener.Addr().String())) }

// Run serves until ctx ends, and then for a moment the requests that are under way. It closes the
// listener.
func (s *webServer) Run(ctx context.Context) error {
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

// Close closes a server that does not run.
func (s *webServer) Close() error { return s.listener.Close() }

// onlyFor refuses requests for hosts that are not allowed.
func (s *webServer) onlyFor(hosts []string, handler http.Handler) http.Handler {
	local := s.IsLocal()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := hostOf(r.Host)
		_, notAnAddress := netip.ParseAddr(host)
		switch {
		case isLocal(host), !local && notAnAddress == nil:
		case slices.ContainsFunc(hosts, func(allowed string) bool { return strings.EqualFold(allowed, host) }):
		default:
			http.Error(w, "this server does not serve this host; --host allows one", http.StatusMisdirectedRequest)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// hostOf returns the host of an address with or without a port.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil { // there is no port
		host = strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
	}
	return host
}

// isLocal reports whether a host is this machine under a name that no other site can have.
func isLocal(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
