package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// replicaName is the application_name of the replica.
const replicaName = "sqllock_replica"

// StartPostgresPair starts a durable PostgreSQL and a synchronous replica. A transaction is
// committed when both have it on disk and it is visible on the replica. While the replica is
// down, commits wait. [Server.Promote] makes the replica a primary.
func StartPostgresPair(ctx context.Context, dir string) (primary, replica *Server, err error) {
	recipe, err := DurablePostgres(ctx)
	if err != nil {
		return nil, nil, err
	}
	primary, err = Start(ctx, recipe.With(settings(
		"synchronous_standby_names="+replicaName, "synchronous_commit=remote_apply")...), filepath.Join(dir, "primary"))
	if err != nil {
		return nil, nil, err
	}
	replica, err = Start(ctx, recipe.replicating(primary), filepath.Join(dir, "replica"))
	if err != nil {
		return nil, nil, errors.Join(err, primary.Stop())
	}
	if err := awaitSynchronous(ctx, primary); err != nil {
		return nil, nil, errors.Join(err, replica.Stop(), primary.Stop())
	}
	return primary, replica, nil
}

// replicating returns the recipe for a replica of the primary.
func (r Recipe) replicating(primary *Server) Recipe {
	bin := filepath.Dir(primary.recipe.Serve("", 0)[0])
	r.Create = func(dir string) []string {
		source, _ := url.Parse(primary.DSN()) // StartPostgres has made it
		query := source.Query()
		query.Set("application_name", replicaName)
		source.RawQuery = query.Encode()
		return []string{
			filepath.Join(bin, "pg_basebackup"), "-D", filepath.Join(dir, "data"), "-d", source.String(),
			"--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync",
		}
	}
	return r
}

// awaitSynchronous waits until replication is synchronous.
func awaitSynchronous(ctx context.Context, primary *Server) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return primary.until(ctx, "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')")
}

// Promote makes a replica a primary. Its former primary must be down.
func (s *Server) Promote(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := s.until(ctx, "SELECT pg_promote()"); err != nil {
		return fmt.Errorf("promote: %w", err)
	}
	return nil
}

// until runs a query until it returns true.
func (s *Server) until(ctx context.Context, question string) error {
	db, err := sql.Open(s.recipe.Driver, s.DSN())
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // it was only read from
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	for {
		var yes bool
		if err := db.QueryRowContext(ctx, question).Scan(&yes); err != nil || yes {
			return err
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %s; %s", context.Cause(ctx), strings.ToLower(question), s.logEnd())
		}
	}
}
