// Package migrate is the subcommand migrate: it creates, changes and removes the tables.
package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/migrations"
)

// Command returns the subcommand.
func Command(flags *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Create, change or remove the tables of the locks",
		Long: `Create, change or remove the tables of the locks. The versions are:

  1  the table of Spring Integration 4.3 to 6
  2  the source of fencing tokens, and the table of names
  3  the column EXPIRED_AFTER: the table of Spring Integration 7
  4  the table of names, if version 2 was reached before it had that

A table that Spring's own script created is adopted, with its rows and its columns. The
SQLite file of --local is migrated automatically.`,
		Example: `  sqllock migrate up
  sqllock migrate up --layout spring6
  sqllock migrate status
  sqllock migrate sql
  sqllock migrate grants --to app`,
		Args: args.NoneButCommands,
		RunE: func(*cobra.Command, []string) error {
			return exit.WithHint(exit.Usagef("migrate: a subcommand is missing; nothing was done"), "sqllock migrate up; or sqllock migrate --help")
		},
	}
	cmd.AddCommand(upCommand(flags), downCommand(flags), gotoCommand(flags), statusCommand(flags), sqlCommand(flags), grantsCommand(flags))
	return cmd
}

func upCommand(flags *connect.Flags) *cobra.Command {
	var layout string
	var opts migrations.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring the tables to the latest version",
		Long: `Bring the tables to the latest version, and create them if they do not exist. The
command can be repeated, and several processes can run it at once.

A table without EXPIRED_AFTER stays at version 2, because a Spring Integration before 7
could not lock in a table with that column. When none uses the table any more, add it
with --layout spring7, which is refused while locks are held. With --layout spring6, a
new table does not get it either.`,
		Example: `  sqllock migrate up
  sqllock migrate up --layout spring6
  sqllock migrate up --prefix billing.INT_`,
		Args: args.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if opts.Layout, err = layoutNamed(layout); err != nil {
				return err
			}
			return migrate(cmd, flags, connect.MayCreate, opts, asJSON, migrations.Up)
		},
	}
	addLayoutFlag(cmd, &layout)
	addForceFlag(cmd, &opts)
	addTTLFlag(cmd, &opts.TTL)
	addJSONFlag(cmd, &asJSON)
	return cmd
}

const downName = "down"

func downCommand(flags *connect.Flags) *cobra.Command {
	var opts migrations.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   downName,
		Short: "Take the tables one version back",
		Long: `Take the tables one version back; from version 1 this removes them, even a table
that Spring created. If locks are held, they would be lost, so --force is required.`,
		Example: "  sqllock migrate down",
		Args:    args.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return migrate(cmd, flags, connect.MustExist, opts, asJSON, migrations.Down)
		},
	}
	addForceFlag(cmd, &opts)
	addTTLFlag(cmd, &opts.TTL)
	addJSONFlag(cmd, &asJSON)
	return cmd
}

func gotoCommand(flags *connect.Flags) *cobra.Command {
	var opts migrations.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "goto N",
		Short: "Bring the tables to version N, up or down",
		Long: `Bring the tables to version N, up or down. Version 0 removes them: if locks are held,
--force is required.`,
		Example: "  sqllock migrate goto 2",
		Args:    args.Exactly("N"),
		RunE: func(cmd *cobra.Command, given []string) error {
			version, err := strconv.ParseUint(given[0], 10, 0)
			if err != nil && !errors.Is(err, strconv.ErrRange) { // it is then the largest number, which is no version either
				return exit.WithHint(exit.Usagef("version %q is not a number", args.Shown(given[0])), "sqllock migrate status")
			}
			return migrate(cmd, flags, connect.Presence(version > 0), opts, asJSON, func(ctx context.Context, db *sql.DB, d dialect.Dialect, o *migrations.Options) error {
				return migrations.Goto(ctx, db, d, uint(version), o)
			})
		},
	}
	addForceFlag(cmd, &opts)
	addTTLFlag(cmd, &opts.TTL)
	addJSONFlag(cmd, &asJSON)
	return cmd
}

func statusCommand(flags *connect.Flags) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Print the version of the tables",
		Long:    "Print the version of the tables, the latest version, and whether a migration was interrupted.",
		Example: "  sqllock migrate status",
		Args:    args.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.WithDatabase(cmd.Context(), connect.MustExist, func(c *connect.Connection) error {
				state, err := migrations.Status(cmd.Context(), c.SQL(), c.Dialect, &migrations.Options{Prefix: flags.Prefix})
				if err != nil {
					return connect.MigrationError(cmd.Context(), "read the version", err)
				}
				if asJSON {
					return format.JSON(cmd.OutOrStdout(), newStateView(c.Name, state))
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", c.Name, stateText(state))
				return errors.Join(err, noteApart(cmd, state))
			})
		},
	}
	addJSONFlag(cmd, &asJSON)
	return cmd
}
