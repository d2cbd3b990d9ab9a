package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/migrations"
)

// stateText describes a state on one line.
func stateText(state migrations.State) string {
	text := fmt.Sprintf("version %d of %d", state.Version, state.Latest)
	if state.Layout == dialect.Spring6 && state.Version == state.Target {
		text = fmt.Sprintf("version %d, the last one without EXPIRED_AFTER (Spring before 7); %d is the latest", state.Version, state.Latest)
	}
	if state.Dirty {
		text += ", dirty: a migration was interrupted"
	}
	return text
}

// noteApart says on stderr which of the tables is not where new ones would be made.
func noteApart(cmd *cobra.Command, state migrations.State) error {
	if state.Apart == "" {
		return nil
	}
	_, err := fmt.Fprintf(cmd.ErrOrStderr(), "sqllock: %s\n", state.Apart)
	return err
}

// A stateView is a state as --json prints it, documented in docs/cli.md; fields are only ever added.
type stateView struct {
	Database string `json:"database"` // the DSN without passwords
	Before   *uint  `json:"before,omitempty"`
	Version  uint   `json:"version"`
	Latest   uint   `json:"latest"`
	Dirty    bool   `json:"dirty"`
	Apart    string `json:"apart,omitempty"`
}

func newStateView(database string, state migrations.State) stateView {
	return stateView{Database: database, Version: state.Version, Latest: state.Latest, Dirty: state.Dirty, Apart: state.Apart}
}

func addJSONFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print JSON")
}

// A migration is one of the functions of package migrations.
type migration func(context.Context, *sql.DB, dialect.Dialect, *migrations.Options) error

// migrate runs a migration and prints what it has changed. One that only removes tables creates no file.
func migrate(cmd *cobra.Command, flags *connect.Flags, file connect.Presence, opts migrations.Options, asJSON bool, run migration) error {
	ctx := cmd.Context()
	opts.Prefix = flags.Prefix
	return flags.WithDatabase(ctx, file, func(c *connect.Connection) error {
		if cmd.Name() != downName { // tables can be removed from any server
			if err := flags.CheckServer(ctx, c); err != nil {
				return err
			}
		}
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
		if asJSON {
			view := newStateView(c.Name, after)
			view.Before = &before.Version
			return format.JSON(cmd.OutOrStdout(), view)
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", c.Name, changeText(before, after))
		return errors.Join(err, noteLayout(cmd, after), noteApart(cmd, after))
	})
}

// noteLayout says on stderr why a table without EXPIRED_AFTER has stayed so, unless the command line
// asks for that.
func noteLayout(cmd *cobra.Command, after migrations.State) error {
	if asked := cmd.Flags().Lookup("layout"); asked == nil || asked.Changed || after.Layout != dialect.Spring6 {
		return nil
	}
	_, err := fmt.Fprintf(cmd.ErrOrStderr(), "sqllock: %s has no EXPIRED_AFTER, and none was added: a Spring Integration before 7 could not lock in it any more; "+
		"when none uses the table, add --layout spring7\n", after.Table)
	return err
}

func changeText(before, after migrations.State) string {
	if before.Version == after.Version {
		return fmt.Sprintf("version %d already", after.Version)
	}
	return fmt.Sprintf("version %d → %d", before.Version, after.Version)
}

// layoutNamed returns the layout of a name, or 0 for "".
func layoutNamed(name string) (dialect.Layout, error) {
	if name == "" {
		return 0, nil
	}
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
	cmd.Flags().BoolVar(&opts.Force, "force", false, "change or drop the table even if locks are held")
}

func addLayoutFlag(cmd *cobra.Command, layout *string) {
	cmd.Flags().StringVar(layout, "layout", "", "spring7, or spring6 to share the table with Spring Integration before 7\n(default: that of the table; spring7 if there is none)")
	_ = cmd.RegisterFlagCompletionFunc("layout", cobra.FixedCompletions(
		[]cobra.Completion{dialect.Spring6.String(), dialect.Spring7.String()}, cobra.ShellCompDirectiveNoFileComp))
}
