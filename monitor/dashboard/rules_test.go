package dashboard

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/sqllock/sqllock/internal/test/check"
)

// rules returns the expressions of the alerts, by name.
func rules(t *testing.T) map[string]string {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	text := check.Value(os.ReadFile("alerts.yml"))(t)
	must(t, yaml.Unmarshal(text, &file))
	exprs := make(map[string]string)
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			exprs[rule.Alert] = rule.Expr
		}
	}
	return exprs
}

// panels returns the expressions of the dashboard. Its variables are replaced, as Grafana does if all jobs and
// instances are chosen.
func panels(t *testing.T) map[string]string {
	t.Helper()
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		// Templating has the variables that the user chooses, such as the job.
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	text := check.Value(os.ReadFile("grafana.json"))(t)
	must(t, json.Unmarshal(text, &board))
	exprs, variables := make(map[string]string), []string{"$__rate_interval", "300s", "$__range", "3600s"}
	for _, variable := range board.Templating.List {
		variables = append(variables, "$"+variable.Name, ".*")
		if of := regexp.MustCompile(`^label_values\((.*), \w+\)$`).FindStringSubmatch(variable.Definition); of != nil {
			exprs["$"+variable.Name] = of[1]
		}
	}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			exprs[panel.Title+": "+target.Expr] = target.Expr
		}
	}
	for where, expr := range exprs {
		if exprs[where] = strings.NewReplacer(variables...).Replace(expr); strings.Contains(exprs[where], "$") {
			t.Errorf("%s: a variable that is not known", where)
		}
	}
	return exprs
}

// TestPromtool has promtool check the alert rules and run their tests. It is in Debian's package
// prometheus, which is not installed for that, but unpacked: that takes up to 20 s.
func TestPromtool(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		promtool = unpacked(t)
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil { //nolint:gosec // it is promtool
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
	text := check.Value(os.ReadFile("alerts_test.yml"))(t)
	for name := range rules(t) {
		if !strings.Contains(string(text), name) {
			t.Errorf("no test has %s fire", name)
		}
	}
}

// unpacked returns promtool from Debian's package. Where that cannot be had the test is skipped, but
// not in CI.
func unpacked(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	script := `apt-get -q download prometheus || { apt-get -q update && apt-get -q download prometheus; } && dpkg -x prometheus_*.deb .`
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("promtool is in Debian's package prometheus: %v\n%s", err, out)
		}
		t.Skipf("no promtool: install Debian's package prometheus: %v", err)
	}
	return filepath.Join(dir, "usr/bin/promtool")
}
