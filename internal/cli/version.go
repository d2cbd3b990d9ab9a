package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/internal/cli/args"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Long:    "Print the version of this program, its commit, and the version of Go that built it.",
		Example: "  sqllock version",
		Args:    args.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			info, _ := debug.ReadBuildInfo()
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionText(info))
			return err
		},
	}
}

// versionText describes a build. info may be nil.
func versionText(info *debug.BuildInfo) string {
	version, commit := "unknown", ""
	if info != nil {
		if info.Main.Version != "" {
			version = info.Main.Version
		}
		settings := make(map[string]string)
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		if revision := settings["vcs.revision"]; revision != "" {
			commit = fmt.Sprintf("commit %.12s", revision)
			if settings["vcs.modified"] == "true" {
				commit += " with changes"
			}
			commit += ", "
		}
	}
	return fmt.Sprintf("sqllock %s (%s%s, %s/%s)", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
