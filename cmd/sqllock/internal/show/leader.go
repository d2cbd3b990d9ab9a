package show

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/complete"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/state"
	"github.com/sqllock/sqllock/sync/leader"
)

// Leader returns the subcommand leader.
func Leader(flags *connect.Flags) *cobra.Command {
	var asJSON bool
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "leader ROLE",
		Short: "Show who leads a role",
		Long: `Show who leads a role: the client id of the leader, which may say where the leader
can be reached, since when it leads, and how long its lease lasts unless it is
renewed. The exit code is 0, whether the role has a leader or not.`,
		Example: `  sqllock leader scheduler
  curl "http://$(sqllock leader --json web | jq -r .client)/"`,
		Args:              args.Exactly("ROLE"),
		ValidArgsFunction: complete.Keys(flags),
		RunE: func(cmd *cobra.Command, given []string) error {
			return flags.WithRepository(cmd.Context(), ttl, func(r *sqllock.Repository) error {
				now, err := leader.Current(cmd.Context(), r, given[0])
				if err != nil {
					return err
				}
				state.RememberKey(given[0])
				if now.Holder != "" {
					printTTL(cmd, r, ttl)
				}
				return writeLeader(cmd.OutOrStdout(), given[0], now, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	connect.AddTTL(cmd, &ttl)
	return cmd
}

// A leaderView is a leader as the command shows it. Its JSON form is documented in
// docs/cli.md; fields are only ever added. All but the role are null if nobody leads.
type leaderView struct {
	Role   string   `json:"role"`
	Client *string  `json:"client"`
	Holder *string  `json:"holder"`
	Age    *float64 `json:"age_seconds"`
	Left   *float64 `json:"left_seconds"`
}

func writeLeader(w io.Writer, role string, now leader.Leader, asJSON bool) error {
	led := now.Holder != ""
	var err error
	switch {
	case asJSON && led:
		return format.JSON(w, leaderView{role, &now.Client, &now.Holder, seconds(now.Age), seconds(now.Left)})
	case asJSON:
		return format.JSON(w, leaderView{Role: role})
	case led:
		_, err = fmt.Fprintf(w, "role       %s\nleader     %s\nholder     %s\nleads for  %s\ntime left  %s\n", format.Printable(role),
			format.Printable(now.Client), format.Printable(now.Holder), format.Duration(now.Age), format.Duration(now.Left))
	default:
		_, err = fmt.Fprintf(w, "role       %s\nleader     -\n", format.Printable(role))
	}
	return err
}
