package dashboard

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/attribute"

	"github.com/sqllock/sqllock/internal/test/check"
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
