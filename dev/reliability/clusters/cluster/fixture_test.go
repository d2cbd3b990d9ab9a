//go:build linux

package cluster_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/dev/reliability/clusters/cluster"
	"github.com/sqllock/sqllock/internal/test/check"
)

var must = check.Must

func TestMain(m *testing.M) {
	_ = mysql.SetLogger(&mysql.NopLogger{}) // it would report each connection that is broken here
	os.Exit(m.Run())
}

// retry runs do until it succeeds, for a minute.
func retry(t *testing.T, do func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		err := do(ctx)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// onAny runs a statement on the first node that takes it. A statement that was run before, and whose
// answer was lost, is no error.
func onAny(ctx context.Context, c *cluster.Cluster, statement string) (err error) {
	for _, n := range c.Nodes {
		one := on(ctx, c, n, statement)
		if one == nil || strings.Contains(strings.ToLower(one.Error()), "duplicate") {
			return nil
		}
		err = errors.Join(err, one)
	}
	return err
}

func on(ctx context.Context, c *cluster.Cluster, n *cluster.Node, statement string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	db, err := sql.Open(c.Driver, n.DSN())
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, statement)
	return err
}

func killAll(c *cluster.Cluster) (err error) {
	for _, n := range c.Nodes {
		err = errors.Join(err, n.Kill())
	}
	return err
}
