package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
)

// release is the version of a release, as "v1.2.3". The linker sets it:
//
//	go build -ldflags "-X github.com/sqllock/sqllock/cmd/sqllock/internal/cli.release=v1.2.3" ./cmd/sqllock
//
// Other builds have none, and the version is that which Go records: the version given to go
// install, or that of the commit in a checkout.
var release string

func newVersionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Long:    "Print the version of this program, its commit, and the version of Go that built it.",
		Example: "  sqllock version",
		Args:    args.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := currentBuild()
			if asJSON {
				return format.JSON(cmd.OutOrStdout(), b)
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), b)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// A build is what is known of the program that runs. Its JSON form is documented in docs/cli.md;
// fields are only ever added.
type build struct {
	Version string `json:"version"` // "v1.2.3", a pseudo-version, or "devel" if nothing is known
	Commit  string `json:"commit"`  // "" if it is not known
	Changed bool   `json:"changed"` // the files differed from those of the commit
	Go      string `json:"go"`
	System  string `json:"system"`
	Arch    string `json:"arch"`
}

func currentBuild() build {
	info, _ := debug.ReadBuildInfo()
	return newBuild(release, info)
}

// newBuild describes a build. info may be nil.
func newBuild(release string, info *debug.BuildInfo) build {
	if info == nil {
		info = new(debug.BuildInfo)
	}
	recorded := info.Main.Version
	if recorded == "(devel)" {
		recorded = ""
	}
	b := build{Version: cmp.Or(release, recorded, "devel"), Go: runtime.Version(), System: runtime.GOOS, Arch: runtime.GOARCH}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Commit = setting.Value
		case "vcs.modified":
			b.Changed = setting.Value == "true"
		}
	}
	return b
}

// String describes a build on one line.
func (b build) String() string {
	commit := ""
	if b.Commit != "" {
		commit = fmt.Sprintf("commit %.12s", b.Commit)
		if b.Changed {
			commit += " with changes"
		}
		commit += ", "
	}
	return fmt.Sprintf("sqllock %s (%s%s, %s/%s)", b.Version, commit, b.Go, b.System, b.Arch)
}
