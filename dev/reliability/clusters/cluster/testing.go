//go:build linux

package cluster

import (
	"context"
	"errors"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// For starts a cluster that is closed when tb ends: For(t, "galera", StartGalera). The name is one
// of [server.Clusters]. Plain go test starts nothing: tb is skipped unless [server.MayInstall]. If
// the cluster's programs are missing, tb is skipped too, or fails if SQLLOCK_REQUIRE has the name.
func For(tb testing.TB, name string, start func(context.Context) (*Cluster, error)) *Cluster {
	tb.Helper()
	dbtest.OwnServers(tb)
	required, err := server.Required(name)
	check.Must(tb, err)
	c, err := start(tb.Context())
	if errors.Is(err, server.ErrMissing) && !required {
		tb.Skipf("SKIPPED, NOT TESTED: %v", err)
	}
	check.Must(tb, err)
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Error(err)
		}
	})
	return c
}
