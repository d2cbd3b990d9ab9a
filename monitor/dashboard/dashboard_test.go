package dashboard

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

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
