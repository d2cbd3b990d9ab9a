package sqltext_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/sqltext"
)

func TestNamesFor(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]sqltext.Names{
		"":             {Prefix: "INT_", Lock: "INT_LOCK", Fence: "INT_LOCK_FENCE", Name: "INT_LOCK_NAME"},
		"INT_":         {Prefix: "INT_", Lock: "INT_LOCK", Fence: "INT_LOCK_FENCE", Name: "INT_LOCK_NAME"},
		"billing.int_": {Schema: "billing", Prefix: "int_", Lock: "billing.int_LOCK", Fence: "billing.int_LOCK_FENCE", Name: "billing.int_LOCK_NAME"},
		"_":            {Prefix: "_", Lock: "_LOCK", Fence: "_LOCK_FENCE", Name: "_LOCK_NAME"},
	} {
		got, err := sqltext.NamesFor(prefix)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", prefix, got, err, want)
		}
	}
}

func TestNamesForRefuses(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{
		" ", "INT LOCK", "INT_;", "INT_'", `"INT_"`, "1INT", ".INT_", "a.b.", "a.b.INT_", "billing.",
		"INT_\n", "İNT_", strings.Repeat("x", 41), strings.Repeat("x", 41) + ".INT_",
	} {
		if _, err := sqltext.NamesFor(prefix); !errors.Is(err, dialect.ErrPrefix) {
			t.Errorf("%q: %v", prefix, err)
		}
	}
}

func FuzzNamesFor(f *testing.F) {
	f.Add("INT_")
	f.Add("billing.INT_")
	f.Add("x; DROP TABLE INT_LOCK")
	f.Fuzz(func(t *testing.T, prefix string) {
		names, err := sqltext.NamesFor(prefix)
		if err != nil {
			return
		}
		if strings.ContainsAny(names.Lock, " ;'\"`\\()-\x00\n") || len(names.Lock) > 90 {
			t.Errorf("%q gives %q", prefix, names.Lock)
		}
	})
}
