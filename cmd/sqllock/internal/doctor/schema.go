package doctor

import (
	"context"
	"fmt"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/rights"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/migrations"
)

// checkSchema reads the version that the migrations have recorded.
func (e *examination) checkSchema(ctx context.Context) []finding {
	state, err := migrations.Status(ctx, e.SQL(), e.Dialect, &migrations.Options{Prefix: e.flags.Prefix})
	if err != nil {
		// A user who only uses locks may lack the right to read the version.
		return []finding{{noteworthy, "schema", "version not known: " + textOf(err), e.rightAdvice(ctx, err, rights.Versions(e.names), "let the user SELECT from that table, or run doctor as the user who migrates")}}
	}
	return []finding{e.schemaFinding(state)}
}

func (e *examination) schemaFinding(state migrations.State) finding {
	version := fmt.Sprintf("version %d of %d", state.Version, state.Latest)
	up := dbcall.MigrateUp(e.flags.Prefix)
	spring6 := state.Layout == dialect.Spring6
	if spring6 {
		up += " --layout spring6 (spring7 when no Spring before 7 uses the table any more)"
	}
	switch {
	case state.Dirty:
		return finding{
			broken, "schema", version + ": another program left a step half done",
			"all steps can be repeated: drop " + state.Bookkeeping + ", then " + up,
		}
	case state.Version > state.Latest:
		return finding{noteworthy, "schema", version + ": a later version of sqllock has migrated it", "use that version"}
	case state.Apart != "" && state.Layout == 0:
		return finding{broken, "schema", version + ", but the table does not exist", state.Apart}
	case state.Apart != "" && state.Version != state.Target:
		return finding{noteworthy, "schema", version, state.Apart}
	case spring6 && state.Version > versionOfSpring6: // up refuses it
		down := dbcall.MigrateGoto(versionOfSpring6, e.flags.Prefix)
		if state.Version >= versionOfNames {
			down += " (this removes the names of keys, and the runs of jobs)"
		}
		return finding{
			broken, "schema", version + ", but the table has no EXPIRED_AFTER: it was dropped, or migrating down was interrupted",
			fmt.Sprintf("%s; then, if no Spring before 7 uses the table, %s", down, dbcall.MigrateGoto(int(state.Latest), e.flags.Prefix)),
		}
	case state.Layout == 0 && state.Version == 0:
		return finding{broken, "schema", "not created yet", up}
	case state.Layout == 0:
		return finding{broken, "schema", version + ", but the table does not exist", "drop " + state.Bookkeeping + ", then " + up}
	case state.Version == 0:
		return finding{noteworthy, "schema", "the table was not created by sqllock", up + " adopts it"}
	case state.Version == versionOfSpring6 && spring6:
		return finding{good, "schema", version, "when no Spring before 7 uses the table any more: " + dbcall.MigrateUp(e.flags.Prefix) + " --layout spring7"}
	case state.Version == state.Latest:
		return finding{good, "schema", version, ""}
	default:
		return finding{noteworthy, "schema", version, up}
	}
}

// versionOfSpring6 is the last version whose table Spring before 7 can use, versionOfNames the first with a table of names.
const versionOfSpring6, versionOfNames = 2, 4
