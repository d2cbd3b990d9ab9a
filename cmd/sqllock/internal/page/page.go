// Package page is the subcommand page: the lock table in a browser.
package page

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/complete"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/state"
	"github.com/sqllock/sqllock/monitor/page"
)

//go:embed help.txt
var help string

// A Check examines the database.
type Check func(context.Context) ([]page.Finding, error)

// options are the flags of the command.
type options struct {
	listen       string
	unlock       bool
	hosts        []string
	names, roles []string
	limit        int
	passwordFile string
	ttl          time.Duration
}

// Command returns the subcommand. check is what it shows of the database beside the locks.
func Command(flags *connect.Flags, check Check) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "page",
		Short: "Show the locks in a browser",
		Long:  help,
		Example: `  sqllock page
  sqllock page --listen 127.0.0.1:0 --role scheduler --name orders/42
  ssh -t -L 8080:127.0.0.1:8080 db.example.com sqllock page`,
		Args: args.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.limit < 1 {
				return exit.Usagef("--limit %d: it must be at least 1", o.limit)
			}
			return flags.WithRepository(cmd.Context(), o.ttl, func(r *sqllock.Repository) error {
				return run(cmd, r, o, check)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", loopback, "HOST:PORT to listen at; port 0 is a free one")
	f.BoolVar(&o.unlock, "allow-unlock", false, "let viewers remove the rows of locks; each removal is printed on stderr")
	f.StringArrayVar(&o.hosts, "host", nil, "the name under which browsers request the page, unless it is that of this machine or an IP address (repeatable)")
	f.StringArrayVar(&o.names, "name", nil, "show this key instead of its hash, if it is in the table (repeatable)")
	f.StringArrayVar(&o.roles, "role", nil, "show who leads this role (repeatable)")
	f.StringVar(&o.passwordFile, "password-file", "", "ask viewers for the password in this file, or else in "+passwordVariable)
	f.IntVar(&o.limit, "limit", page.DefaultLimit, "how many rows to read at most")
	for _, name := range []string{"name", "role"} {
		_ = cmd.RegisterFlagCompletionFunc(name, complete.UsedKeys) // the flag exists
	}
	connect.AddTTL(cmd, &o.ttl)
	return cmd
}

func run(cmd *cobra.Command, r *sqllock.Repository, o options, check Check) error {
	process.CatchBrokenPipes() // the page outlives the readers of what is printed
	secret, err := password(o.passwordFile)
	if err != nil {
		return err
	}
	registry, err := sqllock.NewRegistry(r, nil)
	if err != nil {
		return err
	}
	settings := &page.Options{Title: "Locks", Names: o.names, Roles: o.roles, Limit: o.limit, Check: check}
	for _, key := range state.Keys() {
		settings.Names = append(settings.Names, key)
	}
	if o.unlock {
		settings.AllowUnlock = func(*http.Request, sqllock.Row) error { return nil }
		settings.OnUnlock = func(_ *http.Request, u page.Unlock) { cmd.PrintErrln("sqllock: " + audited(u)) }
	}
	handler := page.Handler(registry, settings)
	if secret != "" {
		handler = protected(secret, handler)
	}
	server, err := listen(cmd.Context(), o.listen, handler, o.hosts...)
	if err != nil {
		return err
	}
	if o.unlock && len(o.hosts) == 0 && !server.IsLocal() {
		return errors.Join(exit.WithHint(exit.Usagef("--allow-unlock where other machines can reach the page needs --host"),
			"--host, with the name under which browsers request the page"), server.Close())
	}
	switch {
	case !server.IsLocal() && secret == "":
		cmd.PrintErrln("sqllock: the page has no password, and other machines can reach it")
	case !server.IsLocal():
		cmd.PrintErrln("sqllock: the password of the page is not encrypted on its way: put a server with TLS in front of it")
	}
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), server.URL()); err != nil {
		return err
	}
	return errors.Join(server.Run(cmd.Context()), registry.Close(context.WithoutCancel(cmd.Context())))
}

// audited describes what became of a removal.
func audited(u page.Unlock) string {
	row := fmt.Sprintf("the row of %s in region %s, held by %s",
		named(u.Row.Key, u.Row.LockKey), format.Printable(u.Row.Region), named(u.Row.Process.String(), strings.TrimSpace(u.Row.Holder)))
	switch {
	case u.Err != nil:
		return "could not remove " + row + ": " + u.Err.Error()
	case u.Removed:
		return "removed " + row
	default:
		return "did not remove " + row + ": it was released or acquired by another holder"
	}
}

// named returns what a column contains, after the name of that if there is another one.
func named(name, column string) string {
	if name == "" || name == column {
		return format.Printable(column)
	}
	return format.Printable(name) + " (" + format.Printable(column) + ")"
}
