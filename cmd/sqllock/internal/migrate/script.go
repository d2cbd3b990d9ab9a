package migrate

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/rights"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/migrations"
)

// sqlFlags are those of the command that prints statements.
type sqlFlags struct {
	from, to int
	layout   string
	opts     migrations.Options
}

func sqlCommand(flags *connect.Flags) *cobra.Command {
	var given sqlFlags
	cmd := &cobra.Command{
		Use:   "sql",
		Short: "Print the statements of a migration",
		Long: `Print the statements that migrate up would run on this database, or those to another
version, for an administrator who changes tables by hand. Nothing is changed.

The version of the tables is read from the database. With --from it is not asked at all,
so no right is needed, and the DSN says only which database it is.

The client must end at the first error: sqlite3 does with -bail. One that removes comments,
as mysql does without --comments, loses what TiDB and MariaDB read in one.`,
		Example: `  sqllock migrate sql
  sqllock migrate sql --from 0 --to 4
  sqllock migrate sql --to 2 --ttl 30s`,
		Args: args.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if given.opts.Layout, err = layoutNamed(given.layout); err != nil {
				return err
			}
			given.opts.Prefix = flags.Prefix
			return printScript(cmd, flags, given)
		},
	}
	cmd.Flags().IntVar(&given.from, "from", 0, "the version of the tables, instead of asking the database; needs --to")
	cmd.Flags().IntVar(&given.to, "to", 0, "the version to reach (default: that of migrate up)")
	addLayoutFlag(cmd, &given.layout)
	addTTLFlag(cmd, &given.opts.TTL)
	return cmd
}

func printScript(cmd *cobra.Command, flags *connect.Flags, given sqlFlags) error {
	ctx := cmd.Context()
	switch {
	case given.from < 0 || given.to < 0:
		return exit.Usagef("a version is not negative")
	case cmd.Flags().Changed("to") && given.layout != "":
		return exit.Usagef("%s: --to and --layout exclude each other", args.Name(cmd))
	}
	if cmd.Flags().Changed("from") {
		d, err := flags.Dialect()
		if err != nil {
			return err
		}
		if !cmd.Flags().Changed("to") {
			return exit.Usagef("%s: --from needs --to", args.Name(cmd))
		}
		return given.print(cmd, d, migrations.State{Version: uint(given.from)})
	}
	return flags.WithDatabase(ctx, connect.MustExist, func(c *connect.Connection) error {
		state, err := migrations.Status(ctx, c.SQL(), c.Dialect, &given.opts)
		if err != nil {
			return connect.MigrationError(ctx, "read the version", err)
		}
		return given.print(cmd, c.Dialect, state) //nolint:contextcheck // Script sends nothing
	})
}

func (given sqlFlags) print(cmd *cobra.Command, d dialect.Dialect, from migrations.State) error {
	to := max(from.Version, from.Target)
	if cmd.Flags().Changed("to") {
		to = uint(given.to)
	}
	text, err := migrations.Script(d, from, to, &given.opts)
	if errors.Is(err, migrations.ErrState) && cmd.Flags().Changed("from") {
		return exit.Usagef("--from %d: %w", given.from, err)
	}
	if err != nil {
		return connect.MigrationError(cmd.Context(), "print the statements", err)
	}
	if text == "" {
		text = fmt.Sprintf("-- version %d already\n", from.Version)
	}
	_, err = io.WriteString(cmd.OutOrStdout(), text)
	return err
}

func grantsCommand(flags *connect.Flags) *cobra.Command {
	var to, role string
	names := make([]string, len(rights.Roles))
	for i, r := range rights.Roles {
		names[i] = string(r)
	}
	cmd := &cobra.Command{
		Use:   "grants --to USER",
		Short: "Print the GRANTs of a user of the tables",
		Long: `Print the statements that give a user of this database what it needs. Nothing is
changed. The roles are

  application  locks, and runs doctor
  monitor      reads: list, describe, top, page
  cleaner      runs cleanup
  migrator     creates the tables; only their owner can change them on PostgreSQL

On MySQL and MariaDB a user has a host: app@10.0.%; without one it is that of all hosts.
A role of MariaDB has none: readers@.`,
		Example: `  sqllock migrate grants --to app
  sqllock migrate grants --to grafana --for monitor`,
		Args: args.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			chosen, err := roleNamed(role, names)
			if err != nil {
				return err
			}
			if to == "" {
				return exit.WithHint(exit.Usagef("%s: --to is missing", args.Name(cmd)), "%s --help", cmd.CommandPath())
			}
			return printGrants(cmd, flags, chosen, to)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "the user, or the role of the database")
	cmd.Flags().StringVar(&role, "for", string(rights.Application), strings.Join(names, ", "))
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func roleNamed(name string, names []string) (rights.Role, error) {
	for _, role := range rights.Roles {
		if string(role) == name {
			return role, nil
		}
	}
	return "", exit.Usagef("--for %s: it must be one of %s", args.Quote(name), strings.Join(names, ", "))
}

func printGrants(cmd *cobra.Command, flags *connect.Flags, role rights.Role, to string) error {
	names, err := sqltext.NamesFor(flags.Prefix)
	if err != nil {
		return exit.Usagef("%w", err)
	}
	return flags.WithDatabase(cmd.Context(), connect.MustExist, func(c *connect.Connection) error {
		grants, err := rights.Grants(cmd.Context(), c.SQL(), c.Dialect, names, role, to)
		switch {
		case errors.Is(err, rights.ErrNoUsers):
			return exit.Usagef("%w", err)
		case err != nil:
			return connect.MigrationError(cmd.Context(), "print the statements", err)
		}
		for _, g := range grants {
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s;\n", g.Text); err != nil {
				return err
			}
		}
		return nil
	})
}
