package dialect_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/golden"
)

// TestStatements compares each statement of each dialect and layout with a file in
// testdata, so that a change shows in review.
func TestStatements(t *testing.T) {
	t.Parallel()
	for _, d := range []dialect.Dialect{dialect.Postgres(), dialect.MySQL(), dialect.SQLite()} {
		for _, layout := range []dialect.Layout{dialect.Spring7, dialect.Spring6} {
			name := fmt.Sprintf("%s_%v.sql", d.Name, layout)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				golden.Check(t, filepath.Join("testdata", name), render(d.Statements(layout, names(t))))
			})
		}
	}
}

// TestStatementsOfVariants does the same for the statements of a member of a replication group, and
// of a MariaDB with a sequence, that differ from those of other servers.
func TestStatementsOfVariants(t *testing.T) {
	t.Parallel()
	for variant, d := range map[string]dialect.Dialect{
		"group": dialect.MySQL().InGroup().AwaitingGroup(), "galera": dialect.MySQL().InGalera("0000-aaaa", true),
		"galera_mysql": dialect.MySQL().InGalera("0000-aaaa", false), "sequence": dialect.MySQL().WithSequence(), "tidb": dialect.TiDB(), "vitess": dialect.MySQL().OnVitess(),
		"in_order": dialect.MySQL().InOrder(), "group_in_order": dialect.MySQL().InGroup().InOrder(), "sequence_in_order": dialect.MySQL().WithSequence().InOrder(),
	} {
		for _, layout := range []dialect.Layout{dialect.Spring7, dialect.Spring6} {
			all, some := dialect.MySQL().Statements(layout, names(t)), d.Statements(layout, names(t))
			var text strings.Builder
			v, other := reflect.ValueOf(some), reflect.ValueOf(all)
			for i := range v.NumField() {
				if v.Field(i).String() != other.Field(i).String() {
					fmt.Fprintf(&text, "-- %s\n%s;\n\n", v.Type().Field(i).Name, v.Field(i))
				}
			}
			golden.Check(t, filepath.Join("testdata", fmt.Sprintf("mysql_%v_%s.sql", layout, variant)), text.String())
		}
	}
}

// TestStatementsInOrder does the same for the statements that acquire in the order of arrival on PostgreSQL.
func TestStatementsInOrder(t *testing.T) {
	t.Parallel()
	for _, layout := range []dialect.Layout{dialect.Spring7, dialect.Spring6} {
		s := dialect.Postgres().InOrder().Statements(layout, names(t))
		golden.Check(t, filepath.Join("testdata", fmt.Sprintf("postgres_%v_in_order.sql", layout)), s.Acquire+";\n\n"+s.AcquireAll+";\n")
	}
}

// TestNotifyingStatements does the same for the statements that delete rows and notify.
func TestNotifyingStatements(t *testing.T) {
	t.Parallel()
	notifying := names(t)
	notifying.Channel = dialect.Channel
	s := dialect.Postgres().Statements(dialect.Spring7, notifying)
	golden.Check(t, filepath.Join("testdata", "postgres_notify.sql"),
		s.Delete+";\n\n"+s.DeleteAll+";\n\n"+s.DeleteClient+";\n\n"+s.DeleteExpired+";\n")
	for _, d := range []dialect.Dialect{dialect.MySQL(), dialect.SQLite()} {
		if d.Notifies || d.Statements(dialect.Spring7, notifying) != d.Statements(dialect.Spring7, names(t)) {
			t.Errorf("%s: statements change with Names.Channel", d.Name)
		}
	}
}

// TestTurns does the same for the texts with which sessions queue. An embedded database has none.
func TestTurns(t *testing.T) {
	t.Parallel()
	for _, d := range []dialect.Dialect{dialect.Postgres(), dialect.MySQL()} {
		golden.Check(t, filepath.Join("testdata", d.Name+"_turns.sql"), render(d.Turns(names(t))))
	}
	if d := dialect.SQLite(); d.Turns(names(t)) != (dialect.Turns{}) {
		t.Error("SQLite has no sessions of a server")
	}
}

func render(s any) string {
	var text strings.Builder
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		fmt.Fprintf(&text, "-- %s\n%s;\n\n", v.Type().Field(i).Name, v.Field(i))
	}
	return text.String()
}

// TestStatementsAreComplete finds statements that are empty or have unfilled placeholders.
func TestStatementsAreComplete(t *testing.T) {
	t.Parallel()
	for _, d := range []dialect.Dialect{
		dialect.Postgres(), dialect.MySQL(), dialect.MySQL().WithSequence(), dialect.SQLite(),
		dialect.Postgres().InOrder(), dialect.MySQL().InOrder(), dialect.MySQL().WithSequence().InOrder(),
	} {
		for _, layout := range []dialect.Layout{dialect.Spring7, dialect.Spring6} {
			for _, n := range []dialect.Names{names(t), {Lock: "INT_LOCK"}, {Lock: "INT_LOCK", Channel: dialect.Channel}} {
				v := reflect.ValueOf(d.Statements(layout, n))
				for i := range v.NumField() {
					name, text := v.Type().Field(i).Name, v.Field(i).String()
					if text == "" && !slices.Contains(optional, name) || strings.ContainsAny(text, "{}") {
						t.Errorf("%s %v %s: %q", d.Name, layout, name, text)
					}
				}
			}
		}
	}
}

// optional are the statements that some databases do not need.
var optional = []string{
	"AcquireRow", "WriteName", "Isolation", "Outcome", "Number", "Draw", "DrawOne", "Trim", "Fence", "Pick", "PickAll", "PickRow", "IfAll", "AllPicked", "PickAny", "PickClient", "PickExpired",
	"GuardByWriting", "GuardAllByWriting", "Cluster", "ClusterVariables", "File", "PeekCurrent", "BeforeCurrent", "AfterCurrent", "Pin",
}

func names(t *testing.T) dialect.Names {
	t.Helper()
	return check.Value(dialect.NamesFor(""))(t)
}
