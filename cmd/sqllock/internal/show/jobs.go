package show

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/complete"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/state"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/runs"
)

//go:embed jobs.txt
var jobsHelp string

// Jobs returns the subcommand jobs.
func Jobs(flags *connect.Flags) *cobra.Command {
	var asJSON, metrics bool
	var forgotten string
	cmd := &cobra.Command{
		Use:   "jobs",
		Short: "Show when jobs last ran, and how that ended",
		Long:  jobsHelp,
		Example: `  sqllock jobs
  sqllock jobs --json | jq -r '.[] | select(.result == "failed") | .key'
  sqllock jobs --forget old-report
  sqllock jobs --metrics >"$dir/sqllock.$$" && mv "$dir/sqllock.$$" "$dir/sqllock.prom"`,
		Args: args.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			forgets := cmd.Flags().Changed("forget")
			switch {
			case asJSON && metrics:
				return exit.Usagef("--json and --metrics exclude each other")
			case forgets && (asJSON || metrics):
				return exit.Usagef("--forget prints no jobs: leave out --json and --metrics")
			}
			region := ""
			if cmd.Flags().Changed("region") {
				region = flags.Region
			}
			return flags.WithRepository(cmd.Context(), 0, func(r *sqllock.Repository) error {
				if forgets {
					return forget(cmd, flags, r, forgotten)
				}
				views, err := readJobs(cmd.Context(), r, region)
				switch {
				case err != nil:
					return err
				case asJSON:
					return format.JSON(cmd.OutOrStdout(), views)
				case metrics:
					return writeJobMetrics(cmd.OutOrStdout(), views, time.Now())
				default:
					return writeJobs(cmd.OutOrStdout(), views)
				}
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&metrics, "metrics", false, "print metrics in the text format of Prometheus")
	cmd.Flags().StringVar(&forgotten, "forget", "", "delete what is known of the job `KEY`, in the region, so that no alert waits for its next success")
	_ = cmd.RegisterFlagCompletionFunc("forget", complete.UsedKeys) // the flag exists
	return cmd
}

// errNoNames is the error if the table of names cannot be read, or written. Without a known cause `sqllock doctor` says what the table lacks.
func errNoNames(what string, cause error) error {
	err := failure.As(sqllock.ErrDatabase, "the table of names cannot be "+what, failure.WithCure(cause))
	if failure.CureOf(cause) != nil {
		return err
	}
	return exit.WithHint(err, "sqllock doctor")
}

// forget deletes what is known of a job.
func forget(cmd *cobra.Command, flags *connect.Flags, r *sqllock.Repository, key string) error {
	if _, err := r.LockKey(key); err != nil {
		return err
	}
	known, err := runs.Forget(cmd.Context(), r, key)
	if err != nil {
		return errNoNames("written", err)
	}
	text := "forgot the runs of %q in region %s\n"
	if !known {
		text = "no run of %q is known in region %s\n"
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), text, key, format.Printable(flags.Region))
	return err
}

// A runView is what is known of the runs of a job. Its JSON form is documented in docs/cli.md; fields are only ever
// added. An unknown or missing value is null.
type runView struct {
	Result    *string      `json:"result"` // of the last run: succeeded or failed
	Code      *int         `json:"exit_code"`
	Ended     *float64     `json:"ended_seconds"`
	Took      *float64     `json:"took_seconds"`
	Process   *processView `json:"process"`
	Succeeded *float64     `json:"succeeded_seconds"`
	Runs      int64        `json:"runs"`
	Failures  int64        `json:"failures"`
	Skips     int64        `json:"skips"`
	Skipped   *float64     `json:"skipped_seconds"`

	run runs.Run
}

// A jobView is a job as the command shows it, in the same way.
type jobView struct {
	Key     *string `json:"key"`
	LockKey string  `json:"lock_key"`
	Region  string  `json:"region"`
	runView
}

func viewOfRun(run runs.Run) runView {
	v := runView{Runs: run.Runs, Failures: run.Failures, Skips: run.Skips, run: run}
	if run.Succeeded != nil {
		v.Succeeded = seconds(*run.Succeeded)
	}
	if run.Skipped != nil {
		v.Skipped = seconds(*run.Skipped)
	}
	if last := run.Last; last != nil {
		v.Result, v.Code, v.Ended, v.Took, v.Process = known("succeeded"), last.Code, seconds(last.Ended), seconds(last.Took), viewOfProcess(last.Process)
		if last.Failed {
			v.Result = known("failed")
		}
	}
	return v
}

// readJobs returns the jobs of a region, or of all, in the order of their names. It never returns nil without an error.
func readJobs(ctx context.Context, r *sqllock.Repository, region string) ([]jobView, error) {
	all, err := runs.Read(ctx, r)
	if err != nil {
		return nil, errNoNames("read", err)
	}
	remembered, views := state.Keys(), []jobView{}
	for _, run := range all {
		if region == "" || run.Region == region {
			views = append(views, jobView{known(cmp.Or(run.Key, remembered[run.LockKey])), run.LockKey, run.Region, viewOfRun(run)})
		}
	}
	slices.SortFunc(views, func(a, b jobView) int {
		return cmp.Or(strings.Compare(a.name(), b.name()), strings.Compare(a.Region, b.Region), strings.Compare(a.LockKey, b.LockKey))
	})
	return views, nil
}

// name returns the key, or the LOCK_KEY if it is not known.
func (v jobView) name() string {
	if v.Key == nil {
		return v.LockKey
	}
	return *v.Key
}

// writeJobs prints jobs as a table on a terminal, or as lines.
func writeJobs(w io.Writer, views []jobView) error {
	if _, ok := format.TerminalWidth(w); ok {
		_, err := fmt.Fprintln(w, jobTable(views))
		return err
	}
	for _, v := range views {
		key, process := "-", "-"
		if v.Key != nil {
			key = format.Printable(*v.Key)
		}
		if v.Process != nil {
			process = format.Printable(v.run.Last.Process.String())
		}
		_, err := fmt.Fprintln(w, strings.Join([]string{
			key, format.Printable(v.LockKey), format.Printable(v.Region), orDash(v.Result), orDash(v.Code), secondsOrDash(v.Ended), secondsOrDash(v.Took), secondsOrDash(v.Succeeded),
			strconv.FormatInt(v.Runs, 10), strconv.FormatInt(v.Failures, 10), strconv.FormatInt(v.Skips, 10), process,
		}, "\t"))
		if err != nil {
			return err
		}
	}
	return nil
}

// orDash returns a value as a script gets it, or a dash for none.
func orDash[T any](value *T) string {
	if value == nil {
		return "-"
	}
	return fmt.Sprint(*value)
}

// secondsOrDash is orDash without the exponent that a large number would get.
func secondsOrDash(value *float64) string {
	if value == nil {
		return "-"
	}
	return strconv.FormatFloat(*value, 'f', -1, 64)
}

func jobTable(views []jobView) string {
	if len(views) == 0 {
		return "no jobs"
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"Key", "Region", "Last run", "Took", "Result", "Last success", "Runs", "Failed", "Skipped", "On"})
	for _, v := range views {
		ended, took, result, host := "-", "-", "-", "-"
		if last := v.run.Last; last != nil {
			ended, took, result, host = format.Duration(last.Ended)+" ago", format.Duration(last.Took), last.Result(), textOf(last.Process.Host)
		}
		t.AppendRow(table.Row{format.Printable(v.name()), format.Printable(v.Region), ended, took, result, v.successText(), v.Runs, v.Failures, v.Skips, host})
	}
	return t.Render()
}

// successText says when a run last succeeded.
func (v runView) successText() string {
	if v.run.Succeeded == nil {
		return "never"
	}
	return format.Duration(*v.run.Succeeded) + " ago"
}

// write writes what is known of runs as lines of a description.
func (v runView) write(line func(name, text string)) {
	if last := v.run.Last; last != nil {
		by := ""
		if v.Process != nil {
			by = ", by " + format.Printable(last.Process.String())
		}
		line("last run", fmt.Sprintf("%s, ended %s ago, took %s%s", last.Result(), format.Duration(last.Ended), format.Duration(last.Took), by))
		line("last success", v.successText())
		line("runs", fmt.Sprintf("%d, %d failed", v.Runs, v.Failures))
	}
	if v.run.Skipped != nil {
		line("skipped", fmt.Sprintf("%d, last %s ago", v.Skips, format.Duration(*v.run.Skipped)))
	}
}
