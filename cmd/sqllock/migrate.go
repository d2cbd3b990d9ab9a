package main

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/migrations"
)

func newMigrateCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Create, change or remove the tables of the locks",
		Long: `Create, change or remove the tables of the locks. Versions:

  1  the table of Spring Integration 4.3 to 6
  2  what fencing tokens are drawn from
  3  the column EXPIRED_AFTER: the table of Spring Integration 7

A table that Spring's own script made is adopted, with its rows. The default SQLite
file migrates itself.`,
		Example: `  sqllock migrate up
  sqllock migrate up --layout spring6
  sqllock migrate status`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newMigrateUpCommand(g), newMigrateDownCommand(g), newMigrateGotoCommand(g), newMigrateStatusCommand(g))
	return cmd
}

func newMigrateUpCommand(g *globals) *cobra.Command {
	var layout string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring the tables to the latest version",
		Long: `Bring the tables to the latest version, creating them if need be. It does nothing
if they are there already, and may be run by several processes at once.

A fleet that shares the table with Spring Integration before 7 stays at version 2:
--layout spring6.`,
		Example: `  sqllock migrate up
  sqllock migrate up --layout spring6
  sqllock migrate up --prefix billing.INT_`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts := migrations.Options{TTL: g.ttl}
			var err error
			if opts.Layout, err = layoutNamed(layout); err != nil {
				return err
			}
			return g.migrate(cmd, opts, migrations.Up)
		},
	}
	cmd.Flags().StringVar(&layout, "layout", dialect.Spring7.String(), "spring7, or spring6 to share the table with Spring Integration before 7")
	g.addConversionFlag(cmd)
	return cmd
}

func newMigrateDownCommand(g *globals) *cobra.Command {
	var opts migrations.Options
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Take the tables one version back",
		Long: `Take the tables one version back; from version 1 this removes them, also a table
that Spring made. Locks that are held would be lost with it, so --force is wanted
where there are any.`,
		Example: "  sqllock migrate down",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts.TTL = g.ttl
			return g.migrate(cmd, opts, migrations.Down)
		},
	}
	addForceFlag(cmd, &opts)
	g.addConversionFlag(cmd)
	return cmd
}

func newMigrateGotoCommand(g *globals) *cobra.Command {
	var opts migrations.Options
	cmd := &cobra.Command{
		Use:   "goto N",
		Short: "Bring the tables to version N, up or down",
		Long: `Bring the tables to version N, up or down. Version 0 is no tables: --force is wanted
where locks are held.`,
		Example: "  sqllock migrate goto 2",
		Args:    exactly("N"),
		RunE: func(cmd *cobra.Command, args []string) error {
			version, err := strconv.ParseUint(args[0], 10, 16)
			if err != nil {
				return withHint(usageError("version %q is not a number", args[0]), "sqllock migrate status")
			}
			opts.TTL = g.ttl
			return g.migrate(cmd, opts, func(ctx context.Context, db *sql.DB, d dialect.Dialect, o *migrations.Options) error {
				return migrations.Goto(ctx, db, d, uint(version), o)
			})
		},
	}
	addForceFlag(cmd, &opts)
	g.addConversionFlag(cmd)
	return cmd
}

func newMigrateStatusCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Print the version of the tables",
		Long:    "Print the version of the tables, the latest there is, and whether a migration broke off.",
		Example: "  sqllock migrate status",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.withDatabase(cmd.Context(), mayExist, func(c *connection) error {
				state, err := migrations.Status(cmd.Context(), c.sqlDB(), c.Dialect, &migrations.Options{Prefix: g.prefix})
				if err != nil {
					return migrationError("look at the version", err)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", c.Name, stateText(state))
				return err
			})
		},
	}
}
