package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
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
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"gopkg.in/yaml.v3"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
)

// familiesThatExist returns the metrics of a registry after everything has happened once.
func familiesThatExist(t *testing.T) (families []*dto.MetricFamily) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		rows := newStage(t, sqllock.RegistryOptions{})
		observers, prom, _ := both(t, nil, rows.repository)
		_, stop := everything(t, observers...)
		families = check.Value(prom.Gather())(t)
		stop()
	})
	return families
}

// The metrics are scraped for an hour.
const (
	scrapeInterval = 15 * time.Second
	scrapes        = 240
)

// A scraped is Prometheus's engine over the metrics that exist, each of which has risen all the time.
type scraped struct {
	*testing.T
	engine *promql.Engine
	names  []string // of the families
	series []storage.Series
}

func scrape(t *testing.T) *scraped {
	t.Helper()
	s := &scraped{T: t, engine: promql.NewEngine(promql.EngineOpts{
		Logger: promslog.NewNopLogger(), MaxSamples: 1e6, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{}),
	})}
	chunk := chunkenc.NewXORChunk()
	to := check.Value(chunk.Appender())(t)
	for i := range scrapes {
		to.Append(0, (time.Duration(i) * scrapeInterval).Milliseconds(), float64(i))
	}
	for _, family := range familiesThatExist(t) {
		s.names = append(s.names, family.GetName())
		samples := check.Value(expfmt.ExtractSamples(new(expfmt.DecodeOptions), family))(t)
		for _, sample := range samples {
			of := map[string]string{"job": "shop", "instance": "app-1"} // which Prometheus adds
			for name, value := range sample.Metric {
				of[string(name)] = string(value)
			}
			s.series = append(s.series, &storage.SeriesEntry{Lset: labels.FromMap(of), SampleIteratorFn: chunk.Iterator})
		}
	}
	return s
}

// find evaluates an expression at the end of the hour.
func (s *scraped) find(expr string) promql.Vector {
	s.Helper()
	querier := &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		found := &seriesSet{SeriesSet: storage.EmptySeriesSet()}
		for _, one := range s.series {
			if labels.Selector(matchers).Matches(one.Labels()) {
				found.left = append(found.left, one)
			}
		}
		return found
	}}
	query := check.Value(s.engine.NewInstantQuery(s.Context(), &storage.MockQueryable{MockQuerier: querier}, nil, expr, time.UnixMilli(0).Add(scrapes*scrapeInterval)))(s.T)
	return check.Value(query.Exec(s.Context()).Vector())(s.T)
}

// A seriesSet iterates over a list of series.
type seriesSet struct {
	storage.SeriesSet // has neither errors nor warnings
	now               storage.Series
	left              []storage.Series
}

func (s *seriesSet) Next() bool {
	if len(s.left) == 0 {
		return false
	}
	s.now, s.left = s.left[0], s.left[1:]
	return true
}

func (s *seriesSet) At() storage.Series { return s.now }

// check checks that each selector of an expression finds something, and that each label by which it groups is one
// of what was found. It returns the names that the expression uses.
func (s *scraped) check(expr string) (used []string, err error) {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		return nil, err
	}
	known := make(map[string]bool)
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		used = append(used, selector.Name)
		now := *selector
		now.OriginalOffset = 0 // which may be longer than the hour
		found := s.find(now.String())
		if len(found) == 0 {
			err = errors.Join(err, fmt.Errorf("there is no %s", selector))
		}
		for _, one := range found {
			one.Metric.Range(func(l labels.Label) { known[l.Name] = true })
		}
		return nil
	})
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if aggregate, ok := node.(*parser.AggregateExpr); ok {
			for _, label := range aggregate.Grouping {
				if !known[label] {
					err = errors.Join(err, fmt.Errorf("no label %q in %s", label, expr))
				}
			}
		}
		return nil
	})
	return used, err
}

// checkAll checks expressions, and that all metrics are used.
func (s *scraped) checkAll(exprs map[string]string) {
	s.Helper()
	var used []string
	for where, expr := range exprs {
		names, err := s.check(expr)
		if err != nil {
			s.Errorf("%s: %v", where, err)
		}
		used = append(used, names...)
	}
	for _, name := range s.names {
		if !slices.ContainsFunc(used, func(one string) bool { return strings.HasPrefix(one, name) }) {
			s.Errorf("%s is not used", name)
		}
	}
}

// TestTheDashboardShowsWhatThereIs compares each of its expressions with the metrics, and the other way
// round. None of its panels is empty: names and labels that are right can still join to nothing.
func TestTheDashboardShowsWhatThereIs(t *testing.T) {
	t.Parallel()
	s, exprs := scrape(t), panels(t)
	s.checkAll(exprs)
	for where, expr := range exprs {
		if len(s.find(expr)) == 0 {
			t.Errorf("%s is empty", where)
		}
	}
}

// TestTheAlertsUseWhatThereIs compares each alert with the metrics, and the other way round.
func TestTheAlertsUseWhatThereIs(t *testing.T) {
	t.Parallel()
	scrape(t).checkAll(rules(t))
}

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
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml", "alerts_days_test.yml"}} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil { //nolint:gosec // it is promtool
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
	text := append(check.Value(os.ReadFile("alerts_test.yml"))(t), check.Value(os.ReadFile("alerts_days_test.yml"))(t)...)
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
