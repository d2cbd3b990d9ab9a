package dashboard

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/drivers/pgxlock"
	"github.com/sqllock/sqllock/internal/test/check"
	sqllockotel "github.com/sqllock/sqllock/monitor/otel"
	sqllockprom "github.com/sqllock/sqllock/monitor/prometheus"
	"github.com/sqllock/sqllock/observe"
)

// TestTheDocumentHasAllThatThereIs looks in docs/observability.md for each metric, label value, alert and
// attribute, and for nothing that is not there.
func TestTheDocumentHasAllThatThereIs(t *testing.T) {
	t.Parallel()
	page := check.Value(os.ReadFile("../../docs/observability.md"))(t)
	has := func(kind, text string) {
		t.Helper()
		if !strings.Contains(string(page), "`"+text+"`") {
			t.Errorf("the %s %s is not in docs/observability.md", kind, text)
		}
	}
	for _, family := range familiesThatExist(t) {
		has("metric", family.GetName())
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				has("label", label.GetName())
				if label.GetName() != "election" && label.GetName() != "name" {
					has("value", label.GetValue())
				}
			}
		}
	}
	for name := range rules(t) {
		has("alert", name)
	}
	attributes := attributesThatExist(t)
	for _, name := range attributes {
		has("attribute", name)
	}
	for _, part := range strings.Split(string(page), "`") {
		if alert := strings.HasPrefix(part, "Sqllock"); alert && rules(t)[part] == "" {
			t.Errorf("there is no alert %s", part)
		}
	}
}

// attributesThatExist returns the attributes of spans and their events after all that they have.
func attributesThatExist(t *testing.T) []string {
	t.Helper()
	var all []attribute.KeyValue
	synctest.Test(t, func(t *testing.T) {
		f := newTraced(t)
		span := f.under("caller", func(ctx context.Context) {
			lease := check.Value(f.registry.Lock(ctx, "k"))(t)
			_, _ = f.registry.TryLock(ctx, "k")
			<-lease.Context().Done()
			synctest.Wait()
		})
		if span == nil {
			t.Fatal("no span")
		}
		for _, span := range f.spans.Ended() {
			all = append(all, span.Attributes()...)
			for _, event := range span.Events() {
				all = append(all, event.Attributes...)
			}
		}
	})
	ours := make(map[string]bool)
	for _, one := range all {
		if strings.HasPrefix(string(one.Key), "sqllock.") {
			ours[string(one.Key)] = true
		}
	}
	return slices.Sorted(maps.Keys(ours))
}

// open is what docs/observability.md begins with.
func open(dsn string) error {
	ctx := context.Background()
	metrics := sqllockprom.New(nil) // github.com/sqllock/sqllock/monitor/prometheus
	prometheus.MustRegister(metrics)

	traces, err := sqllockotel.New(nil) // github.com/sqllock/sqllock/monitor/otel: traces, and the same metrics
	if err != nil {
		return err
	}
	registry, err := pgxlock.Open(ctx, dsn, &pgxlock.Options{
		Repository: sqllock.RepositoryOptions{
			Observers: []*observe.Observer{metrics.Observer(), traces, observe.SlogObserver(nil)},
		},
	})
	if err != nil {
		return err
	}
	return registry.Close(ctx)
}

// TestTheExampleOpens gives it a DSN that is none.
func TestTheExampleOpens(t *testing.T) {
	t.Parallel()
	if err := open("\n"); err == nil {
		t.Error("a line break was accepted")
	}
}

// TestEachModuleLinksItsLibraryAlone compares what an application links with each of the modules.
func TestEachModuleLinksItsLibraryAlone(t *testing.T) {
	t.Parallel()
	const own = `github\.com/(jmoiron/sqlx|sqllock/sqllock($|/dialect|/observe|/internal/[a-z]+$|/monitor/internal/measure$`
	for dir, also := range map[string]string{
		"otel":       `|/monitor/otel$))|^go\.opentelemetry\.io/|^github\.com/(go-logr|cespare)/`,
		"prometheus": `|/monitor/prometheus$))|^github\.com/(prometheus|beorn7|cespare|munnerz)/|^google\.golang\.org/protobuf|^golang\.org/x/sys|^go\.yaml\.in/`,
	} {
		allowed := regexp.MustCompile("^" + own + also)
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", ".")
		cmd.Dir = "../" + dir
		out := check.Value(cmd.Output())(t)
		for pkg := range strings.Lines(string(out)) {
			pkg = strings.TrimSpace(pkg)
			if host, _, _ := strings.Cut(pkg, "/"); !strings.Contains(host, ".") {
				continue // of the standard library
			}
			if !allowed.MatchString(pkg) || strings.Contains(pkg, "internal/test") {
				t.Errorf("%s links %s", dir, pkg)
			}
		}
	}
}
