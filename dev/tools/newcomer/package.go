//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// insertAll is what readline does for Alt-*: it writes all completions into the line. What is
// typed before it is a question, and what is typed after it prints the answer.
const insertAll = `\033*\001echo COMPLETED: \n`

// questions are command lines to complete, with what must be among the completions.
var questions = []struct{ typed, want string }{
	{"sqllock mig", "sqllock migrate"},
	{"sqllock ", "exec .*migrate .*version"},
	{"sqllock migrate ", "down .*up"},
	{"sqllock list --js", "--json"},
	{"sqllock show or", "orders/42"},
	{"sqllock unlock nightly", "nightly:report"},
}

// installPackage installs the .deb of this commit, completes command lines in an interactive bash, and
// reads the man pages.
func installPackage(ctx context.Context, r *root, checkout string) error {
	u := user{r, "/home/admin"}
	var rows []row
	step := func(line, want string) error {
		took, output, err := u.run(ctx, line)
		if err == nil && !regexp.MustCompile(want).MatchString(output) {
			err = fmt.Errorf("%s: no %s in:\n%s", line, want, output)
		}
		say("%s: %s\n%s", took, line, head(output))
		rows = append(rows, row{"`" + line + "`", []times{took}})
		return err
	}
	if err := build(ctx, r, checkout); err != nil {
		return err
	}
	for _, s := range [][2]string{
		{"dpkg --install /srv/sqllock.deb", "Setting up sqllock"},
		{"sqllock version", `v\d+\.\d+\.\d+`},
		{"man -P cat sqllock", `sqllock - [\s\S]*sqllock-cleanup\(1\)`},
		{"man -P cat sqllock-exec", `sqllock-exec - [\s\S]*EXAMPLE`},
		{"dpkg --verify sqllock", `^$`},
	} {
		if err := step(s[0], s[1]); err != nil {
			return err
		}
	}
	if err := complete(ctx, u); err != nil {
		return err
	}
	if err := step("dpkg --purge sqllock", "Removing sqllock"); err != nil {
		return err
	}
	printTable("the package", []string{"Debian 12"}, rows)
	return nil
}

// build makes the package as make snapshot does.
func build(ctx context.Context, r *root, checkout string) error {
	dist := filepath.Join(r.dir, "srv/dist")
	if err := command(ctx, filepath.Join(checkout, "dev/tools/release"), "go", "run", ".", "build", "-out", dist, "-targets", "linux/"+runtime.GOARCH); err != nil {
		return err
	}
	debs, err := filepath.Glob(filepath.Join(dist, "*.deb"))
	if err != nil || len(debs) != 1 {
		return fmt.Errorf("%d packages: %w", len(debs), err)
	}
	return os.Rename(debs[0], filepath.Join(r.dir, "srv/sqllock.deb"))
}

// complete asks the questions in an interactive bash, in which two locks are held.
func complete(ctx context.Context, u user) error {
	typed := new(strings.Builder)
	for _, q := range questions {
		typed.WriteString(q.typed + insertAll)
	}
	// As adduser does: the shell's own settings load bash-completion.
	session := fmt.Sprintf(`cp /etc/skel/.bashrc ~
sqllock exec --local orders/42 -- sqllock exec --local nightly:report -- script -qec 'bash -i' /dev/null < <(
	sleep 2; printf '%s'; printf 'exit\n')`, typed)
	_, output, err := u.run(ctx, session)
	if err != nil {
		return err
	}
	completed := strings.Split(output, "\nCOMPLETED: ")[1:]
	if len(completed) != len(questions) {
		return fmt.Errorf("%d completions, not %d:\n%s", len(completed), len(questions), output)
	}
	var wrong error
	for i, q := range questions {
		line, _, _ := strings.Cut(completed[i], "\n")
		say("%q<Tab>: %s", q.typed, line)
		if !regexp.MustCompile(q.want).MatchString(line) {
			wrong = errors.Join(wrong, fmt.Errorf("%q<Tab>: no %s in %q", q.typed, q.want, line))
		}
	}
	return wrong
}

// head returns the first lines.
func head(text string) string {
	all := strings.SplitAfterN(text, "\n", 8)
	return strings.Join(all[:min(len(all), 7)], "")
}
