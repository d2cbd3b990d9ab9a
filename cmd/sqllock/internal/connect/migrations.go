package connect

import (
	"context"
	"errors"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/migrations"
)

// migrateDefault creates the tables of the default SQLite file, or updates them.
func migrateDefault(ctx context.Context, c *Connection, prefix string) error {
	err := migrations.Up(ctx, c.SQL(), c.Dialect, &migrations.Options{Prefix: prefix})
	return MigrationError(ctx, "create the tables", err)
}

// MigrationError converts an error of package migrations into one with an exit code and
// a hint. op is what failed.
func MigrationError(ctx context.Context, op string, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = context.Cause(ctx)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, migrations.ErrHeld):
		return exit.WithHint(exit.Usagef("%s: %w", op, err), "sqllock list; then, if their holders are dead, --force")
	case errors.Is(err, migrations.ErrOption), errors.Is(err, migrations.ErrVersion), errors.Is(err, dialect.ErrPrefix):
		return exit.Usagef("%s: %w", op, err)
	case errors.Is(err, migrations.ErrBusy):
		return exit.WithHint(failure.As(sqllock.ErrDatabase, op, err), "repeat the command a little later")
	default:
		return failure.As(sqllock.ErrDatabase, op, failure.WithCure(err))
	}
}
