package sqltext_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/golden"
)

// TestStatements compares each statement of each dialect and layout with a file in
// testdata, so that a change shows in review.
func TestStatements(t *testing.T) {
	t.Parallel()
	for _, d := range []sqltext.Dialect{sqltext.Postgres(), sqltext.MySQL(), sqltext.SQLite()} {
		for _, layout := range []dialect.Layout{dialect.Spring7, dialect.Spring6} {
			name := fmt.Sprintf("%s_%v.sql", d.Name, layout)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				golden.Check(t, filepath.Join("testdata", name), render(d.Statements(layout, names(t))))
			})
		}
	}
}

// TestOf checks that each dialect of the API has the texts of its database, and that the others stay what they are.
func TestOf(t *testing.T) {
	t.Parallel()
	for named, want := range map[dialect.Dialect]sqltext.Dialect{
		dialect.Postgres(): sqltext.Postgres(), dialect.MySQL(): sqltext.MySQL(), dialect.SQLite(): sqltext.SQLite(), dialect.TiDB(): sqltext.TiDB(),
		dialect.Postgres().WithSequence(): sqltext.Postgres(), dialect.MySQL().WithoutScans(): sqltext.MySQL(), {}: {},
		dialect.Postgres().WithoutScans().WithoutScans(): sqltext.Postgres().WithoutScans(),
		dialect.MySQL().WithSequence().WithSequence():    sqltext.MySQL().WithSequence(),
	} {
		got := sqltext.Of(named)
		check.Equal(t, named.String()+": name", got.Name, want.Name)
		check.Equal(t, named.String()+": engine", got.Engine, want.Engine)
		if want.Name != "" {
			check.Equal(t, named.String()+": statements", got.Statements(dialect.Spring7, names(t)), want.Statements(dialect.Spring7, names(t)))
		}
	}
}

// TestStatementsOfVariants does the same for the statements of a member of a replication group, and
// of a MariaDB with a sequence, that differ from those of other servers.
func TestStatementsOfVariants(t *testing.T) {
	t.Parallel()
	for variant, d := range map[string]sqltext.Dialect{
		"group": sqltext.MySQL().InGroup().AwaitingGroup(), "galera": sqltext.MySQL().InGalera("0000-aaaa", true),
		"galera_mysql": sqltext.MySQL().InGalera("0000-aaaa", false), "sequence": sqltext.MySQL().WithSequence(), "tidb": sqltext.TiDB(), "vitess": sqltext.MySQL().OnVitess(),
		"in_order": sqltext.MySQL().InOrder(), "group_in_order": sqltext.MySQL().InGroup().InOrder(), "sequence_in_order": sqltext.MySQL().WithSequence().InOrder(),
	} {
		for _, layout := range []dialect.Layout{dialect.Spring7, dialect.Spring6} {
			text := difference(sqltext.MySQL().Statements(layout, names(t)), d.Statements(layout, names(t)))
			golden.Check(t, filepath.Join("testdata", fmt.Sprintf("mysql_%v_%s.sql", layout, variant)), text)
		}
	}
}

// TestStatementsWithoutTokens does the same for the statements of MySQL that differ where no tokens are drawn.
func TestStatementsWithoutTokens(t *testing.T) {
	t.Parallel()
	without := names(t)
	without.Fence = ""
	for _, layout := range []dialect.Layout{dialect.Spring7, dialect.Spring6} {
		golden.Check(t, filepath.Join("testdata", fmt.Sprintf("mysql_%v_without_tokens.sql", layout)), difference(
			sqltext.Of(dialect.MySQL()).Statements(layout, names(t)), sqltext.Of(dialect.MySQL()).Statements(layout, without)))
	}
}

// TestStatementsWithoutScans does the same for those statements that differ on the sessions of Open.
func TestStatementsWithoutScans(t *testing.T) {
	t.Parallel()
	for _, layout := range []dialect.Layout{dialect.Spring7, dialect.Spring6} {
		golden.Check(t, filepath.Join("testdata", fmt.Sprintf("postgres_%v_without_scans.sql", layout)), difference(
			sqltext.Postgres().Statements(layout, names(t)), sqltext.Postgres().WithoutScans().Statements(layout, names(t))))
	}
}

// difference renders the statements of other that differ from those of some.
func difference(some, other sqltext.Statements) string {
	var text strings.Builder
	v, before := reflect.ValueOf(other), reflect.ValueOf(some)
	for i := range v.NumField() {
		if v.Field(i).String() != before.Field(i).String() {
			fmt.Fprintf(&text, "-- %s\n%s;\n\n", v.Type().Field(i).Name, v.Field(i))
		}
	}
	return text.String()
}

// TestStatementsInOrder does the same for the statements that acquire in the order of arrival on PostgreSQL.
func TestStatementsInOrder(t *testing.T) {
	t.Parallel()
	for _, layout := range []dialect.Layout{dialect.Spring7, dialect.Spring6} {
		s := sqltext.Postgres().InOrder().Statements(layout, names(t))
		golden.Check(t, filepath.Join("testdata", fmt.Sprintf("postgres_%v_in_order.sql", layout)), s.Acquire+";\n\n"+s.AcquireAll+";\n")
	}
}

// TestNotifyingStatements does the same for the statements that delete rows and notify.
func TestNotifyingStatements(t *testing.T) {
	t.Parallel()
	notifying := names(t)
	notifying.Channel = dialect.Channel
	s := sqltext.Postgres().Statements(dialect.Spring7, notifying)
	golden.Check(t, filepath.Join("testdata", "postgres_notify.sql"),
		s.Delete+";\n\n"+s.DeleteAll+";\n\n"+s.DeleteClient+";\n\n"+s.DeleteExpired+";\n")
	s = sqltext.Postgres().WithoutScans().Statements(dialect.Spring7, notifying)
	golden.Check(t, filepath.Join("testdata", "postgres_notify_parked.sql"), s.Park+";\n\n"+s.ParkAll+";\n")
	for _, d := range []sqltext.Dialect{sqltext.MySQL(), sqltext.SQLite()} {
		if d.Notifies || d.Statements(dialect.Spring7, notifying) != d.Statements(dialect.Spring7, names(t)) {
			t.Errorf("%s: statements change with Names.Channel", d.Name)
		}
	}
}

// TestTurns does the same for the texts with which sessions queue. An embedded database has none.
func TestTurns(t *testing.T) {
	t.Parallel()
	for _, d := range []sqltext.Dialect{sqltext.Postgres(), sqltext.MySQL()} {
		golden.Check(t, filepath.Join("testdata", d.Name+"_turns.sql"), render(d.Turns(names(t))))
	}
	if d := sqltext.SQLite(); d.Turns(names(t)) != (sqltext.Turns{}) {
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
	for _, d := range []sqltext.Dialect{
		sqltext.Postgres(), sqltext.Postgres().WithoutScans(), sqltext.MySQL(), sqltext.MySQL().WithSequence(), sqltext.SQLite(),
		sqltext.Postgres().InOrder(), sqltext.MySQL().InOrder(), sqltext.MySQL().WithSequence().InOrder(),
	} {
		for _, layout := range []dialect.Layout{dialect.Spring7, dialect.Spring6} {
			for _, n := range []sqltext.Names{names(t), {Lock: "INT_LOCK"}, {Lock: "INT_LOCK", Channel: dialect.Channel}} {
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
	"Take", "TakeAll", "Park", "ParkAll",
	"AcquireRow", "WriteName", "Isolation", "Outcome", "Look", "AcquireUnheld", "DrawUnheld", "OutcomeUnheld", "Number", "Draw", "DrawOne", "Trim", "Fence", "Pick", "PickAll", "PickRow", "IfAll", "AllPicked", "PickAny", "PickClient", "PickExpired",
	"GuardByWriting", "GuardAllByWriting", "Cluster", "ClusterVariables", "File", "PeekCurrent", "BeforeCurrent", "AfterCurrent", "Pin",
}

func names(t *testing.T) sqltext.Names {
	t.Helper()
	return check.Value(sqltext.NamesFor(""))(t)
}
