package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/migrations"
)

// stateText describes a state in one line.
func stateText(state migrations.State) string {
	text := fmt.Sprintf("version %d of %d", state.Version, state.Latest)
	if state.Dirty {
		text += ", dirty: a migration broke off in the middle"
	}
	return text
}

// A migration is one of the functions of package migrations.
type migration func(context.Context, *sql.DB, dialect.Dialect, *migrations.Options) error

// migrate runs a migration and says what it has changed.
func (g *globals) migrate(cmd *cobra.Command, opts migrations.Options, run migration) error {
	ctx := cmd.Context()
	opts.Prefix = g.prefix
	return g.withDatabase(ctx, mayCreate, func(c *connection) error {
		before, err := migrations.Status(ctx, c.sqlDB(), c.Dialect, &opts)
		if err != nil {
			return migrationError("look at the version", err)
		}
		if err := run(ctx, c.sqlDB(), c.Dialect, &opts); err != nil {
			return migrationError("change the tables", err)
		}
		after, err := migrations.Status(ctx, c.sqlDB(), c.Dialect, &opts)
		if err != nil {
			return migrationError("look at the version", err)
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", c.Name, changeText(before, after))
		return err
	})
}

func changeText(before, after migrations.State) string {
	if before.Version == after.Version {
		return fmt.Sprintf("version %d already", after.Version)
	}
	return fmt.Sprintf("version %d → %d", before.Version, after.Version)
}

func layoutNamed(name string) (dialect.Layout, error) {
	for _, layout := range []dialect.Layout{dialect.Spring6, dialect.Spring7} {
		if layout.String() == name {
			return layout, nil
		}
	}
	return 0, usageError("layout %q: it is %s or %s", name, dialect.Spring6, dialect.Spring7)
}

// addConversionFlag gives a command the flag by which the times of existing rows
// are converted.
func (g *globals) addConversionFlag(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&g.ttl, "ttl", migrations.DefaultTTL,
		"time-to-live of the locks that are there when EXPIRED_AFTER comes or goes")
}

func addForceFlag(cmd *cobra.Command, opts *migrations.Options) {
	cmd.Flags().BoolVar(&opts.Force, "force", false, "yes, drop the table even if locks are held")
}

// migrateEmbedded creates the tables of the default SQLite file, or brings them
// up to date.
func migrateEmbedded(ctx context.Context, c *connection, prefix string) error {
	return migrationError("create the tables", migrations.Up(ctx, c.sqlDB(), c.Dialect, &migrations.Options{Prefix: prefix}))
}

// migrationError makes trouble with the database, or bad input, of what package
// migrations returns.
func migrationError(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, migrations.ErrHeld):
		return withHint(usageError("%s: %w", op, err), "sqllock list; then, if their holders are dead, --force")
	case errors.Is(err, migrations.ErrOption), errors.Is(err, migrations.ErrVersion), errors.Is(err, dialect.ErrPrefix):
		return usageError("%s: %w", op, err)
	case errors.Is(err, migrations.ErrBusy):
		return withHint(fmt.Errorf("%w: %s: %w", sqllock.ErrDatabase, op, err), "again, a little later")
	default:
		return fmt.Errorf("%w: %s: %w", sqllock.ErrDatabase, op, err)
	}
}
