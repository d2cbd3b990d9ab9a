package migrate

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/cli/connect"
	"github.com/sqllock/sqllock/internal/cli/exit"
	"github.com/sqllock/sqllock/migrations"
)

// stateText describes a state on one line.
func stateText(state migrations.State) string {
	text := fmt.Sprintf("version %d of %d", state.Version, state.Latest)
	if state.Dirty {
		text += ", dirty: a migration was interrupted"
	}
	return text
}

// A migration is one of the functions of package migrations.
type migration func(context.Context, *sql.DB, dialect.Dialect, *migrations.Options) error

// migrate runs a migration and prints what it has changed.
func migrate(cmd *cobra.Command, flags *connect.Flags, opts migrations.Options, run migration) error {
	ctx := cmd.Context()
	opts.Prefix = flags.Prefix
	return flags.WithDatabase(ctx, connect.MayCreate, func(c *connect.Connection) error {
		before, err := migrations.Status(ctx, c.SQL(), c.Dialect, &opts)
		if err != nil {
			return connect.MigrationError(ctx, "read the version", err)
		}
		if err := run(ctx, c.SQL(), c.Dialect, &opts); err != nil {
			return connect.MigrationError(ctx, "change the tables", err)
		}
		after, err := migrations.Status(ctx, c.SQL(), c.Dialect, &opts)
		if err != nil {
			return connect.MigrationError(ctx, "read the version", err)
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
	return 0, exit.Usagef("layout %q: it must be %s or %s", name, dialect.Spring6, dialect.Spring7)
}

// addTTLFlag gives a command the flag that converts the times of existing rows.
func addTTLFlag(cmd *cobra.Command, ttl *time.Duration) {
	cmd.Flags().DurationVar(ttl, "ttl", migrations.DefaultTTL,
		"time-to-live of the existing locks, if EXPIRED_AFTER is added or removed")
}

func addForceFlag(cmd *cobra.Command, opts *migrations.Options) {
	cmd.Flags().BoolVar(&opts.Force, "force", false, "drop the table even if locks are held")
}
