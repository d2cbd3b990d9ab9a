package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
)

// StartMariaDBPair starts a durable MariaDB and a semi-synchronous replica. A transaction is
// committed when both have it on disk. While the replica is down, commits wait.
// [Server.PromoteMariaDB] makes the replica a primary.
func StartMariaDBPair(ctx context.Context, dir string) (primary, replica *Server, err error) {
	recipe, err := DurableMariaDB(ctx)
	if err != nil {
		return nil, nil, err
	}
	recipe = recipe.With("--log-bin=bin", "--sync-binlog=1", "--rpl-semi-sync-slave-enabled=ON")
	if primary, err = Start(ctx, recipe.With("--server-id=1"), filepath.Join(dir, "primary")); err != nil {
		return nil, nil, err
	}
	if replica, err = Start(ctx, recipe.With("--server-id=2"), filepath.Join(dir, "replica")); err != nil {
		return nil, nil, errors.Join(err, primary.Stop())
	}
	if err := primary.replicateTo(ctx, replica); err != nil {
		return nil, nil, errors.Join(err, replica.Stop(), primary.Stop())
	}
	return primary, replica, nil
}

// replicateTo begins the replication, and waits until it is semi-synchronous.
func (s *Server) replicateTo(ctx context.Context, replica *Server) error {
	config, err := mysql.ParseDSN(s.DSN())
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(config.Addr)
	if err != nil {
		return err
	}
	if err := replica.exec(ctx,
		fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='%s', MASTER_PORT=%s, MASTER_USER='%s', MASTER_PASSWORD='%s', MASTER_USE_GTID=slave_pos",
			host, port, config.User, config.Passwd),
		"START SLAVE",
	); err != nil {
		return err
	}
	if err := s.exec(ctx, "SET GLOBAL rpl_semi_sync_master_timeout = 3600000", "SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC'",
		"SET GLOBAL rpl_semi_sync_master_enabled = ON"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return s.until(ctx, "SELECT COUNT(*) = 2 FROM information_schema.GLOBAL_STATUS"+
		" WHERE (VARIABLE_NAME, VARIABLE_VALUE) IN (('RPL_SEMI_SYNC_MASTER_CLIENTS', '1'), ('RPL_SEMI_SYNC_MASTER_STATUS', 'ON'))")
}

// PromoteMariaDB makes a replica a primary, as soon as it has applied all that it has received. Its
// former primary must be down.
func (s *Server) PromoteMariaDB(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	received, err := s.received(ctx)
	if err == nil {
		err = s.until(ctx, "SELECT MASTER_GTID_WAIT('"+received+"', 60) = 0")
	}
	if err == nil {
		err = s.exec(ctx, "STOP SLAVE", "RESET SLAVE ALL")
	}
	if err != nil {
		return fmt.Errorf("promote: %w", err)
	}
	return nil
}

// received returns the position up to which a replica has received what its primary has done.
func (s *Server) received(ctx context.Context) (position string, err error) {
	db, err := sqlx.Open(s.recipe.Driver, s.DSN())
	if err != nil {
		return "", err
	}
	defer db.Close() //nolint:errcheck // it was only read from
	status := make(map[string]any)
	err = db.QueryRowxContext(ctx, "SHOW SLAVE STATUS").MapScan(status)
	return fmt.Sprintf("%s", status["Gtid_IO_Pos"]), err
}

func (s *Server) exec(ctx context.Context, statements ...string) error {
	return Execute(ctx, s.recipe.Driver, s.DSN(), statements...)
}
