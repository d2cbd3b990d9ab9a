// Package dashboard reads grafana.json, for its tests and for its picture.
package dashboard

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// A Dashboard is what is used of one of Grafana's.
type Dashboard struct {
	Panels     []Panel
	Templating struct{ List []Variable }
}

// A Variable is one that the user chooses, such as the job.
type Variable struct{ Name, Definition string }

// A Panel shows the series of some expressions.
type Panel struct {
	Title   string
	Type    string  // stat, or timeseries
	GridPos GridPos `json:"gridPos"`
	Targets []Target

	FieldConfig struct {
		Defaults struct {
			Unit     string // s, ops, percentunit or short
			Max      *float64
			Decimals *int
		}
	} `json:"fieldConfig"`
}

// A GridPos is where a panel is, in a grid of 24 columns.
type GridPos struct{ X, Y, W, H int }

// A Target is an expression, and a template of the names of its series.
type Target struct{ Expr, LegendFormat string }

// Read reads a dashboard from a file.
func Read(path string) (*Dashboard, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var d Dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &d, nil
}

// Fill replaces the variables of an expression, as Grafana does if all jobs and instances are chosen.
// rate is for $__rate_interval, and span for $__range.
func (d *Dashboard) Fill(expr string, rate, span time.Duration) (string, error) {
	variables := []string{"$__rate_interval", seconds(rate), "$__range", seconds(span)}
	for _, v := range d.Templating.List {
		variables = append(variables, "$"+v.Name, ".*")
	}
	filled := strings.NewReplacer(variables...).Replace(expr)
	if strings.Contains(filled, "$") {
		return "", fmt.Errorf("a variable that is not known: %s", filled)
	}
	return filled, nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%ds", int(d.Seconds())) }
