package cli

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/internal/test/check"
)

// usage is what a wrong command line prints.
var usage = regexp.MustCompile(`^sqllock: .+\n(try: .+\n)?$`)

// FuzzCommandLines runs command lines, whose words are divided by blanks; § stands for the other argument. None runs
// another program, reaches another database than the default file, or waits for a user.
func FuzzCommandLines(f *testing.F) {
	check.Long(f)
	for _, line := range []string{
		"", "-h", "§", "§ --help", "--§", "-§", "list --local --json", "list --local --region §", "show --local §", "show --local -- §", "show --local --json --plain-keys §", "unlock --local §", "unlock --local --force §",
		"key § §", "key --plain-keys §", "leader --local --ttl § r", "cleanup --local --ttl 1m", "cleanup --local --region §", "list --local --prefix §", "list --local --ttl §", "list --local --name §", "doctor --local",
		"migrate up --local --layout §", "migrate §", "migrate down --local", "version --json", "list --dsn §", "exec § -- §", "exec §", "exec --wait § k -- c", "exec -§ k -- c",
		"exec --permits § --take § k -- c", "lead § § --§", "top --local --sort §", "page --local --limit §", "completion bash", "__complete show --local §", "__complete § §", "help §", "list --local=§",
	} {
		for _, argument := range []string{"k", "", "-x", "1e9h", "\x1b[2J\u009b\u202e", "a\nb\r", "\xff\x00", "'; --", "\"%s$(id)`"} {
			f.Add(line, argument)
		}
	}
	f.Setenv("XDG_STATE_HOME", f.TempDir())
	check.Must(f, os.Unsetenv(connect.DSNVariable))
	file := filepath.Join(os.Getenv("XDG_STATE_HOME"), "sqllock", "sqllock.db")
	if code := run(context.Background(), []string{"list", "--local"}, nil, os.Stderr, os.Stderr); code != 0 {
		f.Fatal("the default file was not made")
	}
	migrated := check.Value(os.ReadFile(file))(f)
	f.Fuzz(func(t *testing.T, line, argument string) {
		args := strings.Split(line, " ")
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "§", argument)
		}
		if strings.HasPrefix(args[0], "__complete") && strings.Contains(line+argument, "dsn") {
			t.Skip("it would reach another database")
		}
		check.Must(t, os.WriteFile(file, migrated, 0o600))
		root := Command()
		harmless(root)
		var stdout, stderr strings.Builder
		code := execute(t.Context(), root, args, strings.NewReader(""), &stdout, &stderr)
		if !slices.Contains([]int{0, exit.Failure, exit.Usage, exit.Database, exit.NotAcquired, exit.LockLost}, code) {
			t.Errorf("%q: exit code %d", args, code)
		}
		if code == exit.Usage && (stdout.Len() > 0 || !usage.MatchString(stderr.String())) {
			t.Errorf("%q: printed %q and %q", args, stdout.String(), stderr.String())
		}
		acts := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
		strange := func(r rune) bool { return acts(r) || !unicode.IsPrint(r) && r != '\n' }
		if !utf8.ValidString(stderr.String()) || strings.ContainsFunc(stderr.String(), strange) || strings.ContainsFunc(stdout.String(), acts) {
			t.Errorf("%q: a terminal would act on %q, %q", args, stdout.String(), stderr.String())
		}
	})
}

// harmless has commands do no more than check their command line, where they would wait for ever, run programs
// or reach another database.
func harmless(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		harmless(sub)
	}
	runE := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		local, _ := cmd.Flags().GetBool("local")
		switch given := cmd.Flags().Lookup("dsn"); {
		case given.Changed:
			_, err := connect.ParseDSN(given.Value.String())
			return err
		case slices.Contains([]string{"demo", "verify", "worker", "page", "top"}, cmd.Name()), runsCommand(cmd) && local:
			return nil
		}
		return runE(cmd, args)
	}
}
