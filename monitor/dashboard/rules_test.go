package dashboard

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/promql/parser"
	"gopkg.in/yaml.v3"

	"github.com/sqllock/sqllock"
)

// metricsThatExist are the labels of each metric, with the values that were seen.
type metricsThatExist map[string]map[string][]string

// nameLabel is the label that has the name of a metric.
const nameLabel = "__name__"

// scraped are the labels that Prometheus adds.
var scraped = []string{"job", "instance"}

// familiesThatExist returns the metrics of a registry after everything has happened once.
func familiesThatExist(t *testing.T) (families []*dto.MetricFamily) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		rows := newStage(t, sqllock.RegistryOptions{})
		observers, prom, _ := both(t, nil, rows.repository)
		_, stop := everything(t, observers...)
		var err error
		families, err = prom.Gather()
		must(t, err)
		stop()
	})
	return families
}

// existing returns the names and labels of those metrics.
func existing(t *testing.T) metricsThatExist {
	t.Helper()
	all := make(metricsThatExist)
	for _, family := range familiesThatExist(t) {
		all.add(family)
	}
	return all
}

// add adds a family under the names of its series.
func (m metricsThatExist) add(family *dto.MetricFamily) {
	found := make(map[string][]string)
	for _, metric := range family.GetMetric() {
		for _, l := range metric.GetLabel() {
			found[l.GetName()] = append(found[l.GetName()], l.GetValue())
		}
	}
	if family.GetType() != dto.MetricType_HISTOGRAM {
		m[family.GetName()] = found
		return
	}
	for _, suffix := range []string{"_count", "_sum", "_bucket"} {
		m[family.GetName()+suffix] = maps.Clone(found)
	}
	m[family.GetName()+"_bucket"]["le"] = nil
}

// check parses an expression, and compares it with the metrics. It returns the names that it uses.
func (m metricsThatExist) check(t *testing.T, where, expr string) (used []string) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return nil
	}
	known := slices.Clone(scraped)
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			used = append(used, selector.Name)
			m.checkSelector(t, where, selector)
			known = slices.AppendSeq(known, maps.Keys(m[selector.Name]))
		}
		return nil
	})
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if aggregate, ok := node.(*parser.AggregateExpr); ok {
			for _, label := range aggregate.Grouping {
				if !slices.Contains(known, label) {
					t.Errorf("%s: no label %q in %s", where, label, expr)
				}
			}
		}
		return nil
	})
	return used
}

func (m metricsThatExist) checkSelector(t *testing.T, where string, selector *parser.VectorSelector) {
	t.Helper()
	of, ok := m[selector.Name]
	if !ok {
		t.Errorf("%s: there is no %s", where, selector.Name)
		return
	}
	for _, matcher := range selector.LabelMatchers {
		values, known := of[matcher.Name]
		switch {
		case matcher.Name == nameLabel, slices.Contains(scraped, matcher.Name):
		case !known:
			t.Errorf("%s: %s has no label %q", where, selector.Name, matcher.Name)
		case !slices.ContainsFunc(values, matcher.Matches):
			t.Errorf("%s: %s matches nothing that there is: %v", where, matcher, values)
		}
	}
}

// checkAll checks expressions, and that all metrics are used.
func (m metricsThatExist) checkAll(t *testing.T, exprs map[string]string) {
	t.Helper()
	var used []string
	for where, expr := range exprs {
		used = append(used, m.check(t, where, expr)...)
	}
	for name := range m {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_sum"), "_count"), "_bucket")
		if !slices.ContainsFunc(used, func(one string) bool { return strings.HasPrefix(one, base) }) {
			t.Errorf("%s is not used", base)
		}
	}
}

// rules returns the expressions of the alerts, by name.
func rules(t *testing.T) map[string]string {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	text, err := os.ReadFile("alerts.yml")
	must(t, err)
	must(t, yaml.Unmarshal(text, &file))
	exprs := make(map[string]string)
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			exprs[rule.Alert] = rule.Expr
		}
	}
	return exprs
}

// panels returns the expressions of the dashboard, with its variables replaced.
func panels(t *testing.T) map[string]string {
	t.Helper()
	board := readBoard(t)
	exprs := make(map[string]string)
	for _, variable := range board.Templating.List {
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
		var err error
		if exprs[where], err = board.fill(expr, 5*time.Minute, time.Hour); err != nil {
			t.Errorf("%s: %v", where, err)
		}
	}
	return exprs
}

// TestTheDashboardShowsWhatThereIs compares each of its expressions with the metrics, and the other way
// round.
func TestTheDashboardShowsWhatThereIs(t *testing.T) {
	t.Parallel()
	existing(t).checkAll(t, panels(t))
}

// TestTheAlertsUseWhatThereIs compares each alert with the metrics, and the other way round.
func TestTheAlertsUseWhatThereIs(t *testing.T) {
	t.Parallel()
	existing(t).checkAll(t, rules(t))
}

// TestADashboardOfAnotherVersionIsNoticed checks what the checks find.
func TestADashboardOfAnotherVersionIsNoticed(t *testing.T) {
	t.Parallel()
	m := metricsThatExist{"sqllock_rows": {"state": {"held", "expired"}}}
	for _, bad := range []string{`sqllock_row`, `sqllock_rows{status="held"}`, `sqllock_rows{state="free"}`, `sum by (status) (sqllock_rows)`, `sum(`} {
		probe := new(testing.T)
		if m.check(probe, "probe", bad); !probe.Failed() {
			t.Errorf("%s was not noticed", bad)
		}
	}
	if used := m.check(t, "good", `max by (job, state) (sqllock_rows{state=~"h.*"})`); len(used) != 1 {
		t.Error(used)
	}
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
	text, err := os.ReadFile("alerts_test.yml")
	must(t, err)
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

// A board is what the tests use of grafana.json.
type board struct {
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
	// Templating has the variables that the user chooses, such as the job.
	Templating struct {
		List []struct{ Name, Definition string }
	}
}

func readBoard(t *testing.T) (b board) {
	t.Helper()
	text, err := os.ReadFile("grafana.json")
	must(t, err)
	must(t, json.Unmarshal(text, &b))
	return b
}

// fill replaces the variables of an expression, as Grafana does if all jobs and instances are chosen.
// rate is for $__rate_interval, and span for $__range.
func (b board) fill(expr string, rate, span time.Duration) (string, error) {
	variables := []string{"$__rate_interval", seconds(rate), "$__range", seconds(span)}
	for _, v := range b.Templating.List {
		variables = append(variables, "$"+v.Name, ".*")
	}
	filled := strings.NewReplacer(variables...).Replace(expr)
	if strings.Contains(filled, "$") {
		return "", fmt.Errorf("a variable that is not known: %s", filled)
	}
	return filled, nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%ds", int(d.Seconds())) }
