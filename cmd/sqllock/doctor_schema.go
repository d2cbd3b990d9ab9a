package main

import (
	"context"
	"fmt"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/migrations"
)

// checkSchema looks at the books of the migrations.
func (p *patient) checkSchema(ctx context.Context) []finding {
	state, err := migrations.Status(ctx, p.sqlDB(), p.Dialect, &migrations.Options{Prefix: p.g.prefix})
	if err != nil {
		// Who only uses locks need not have the right to look at the books.
		return []finding{{noteworthy, "schema", "version not known: " + findingText(err), "let the user SELECT from the table that is named, or run doctor as the one who migrates"}}
	}
	return []finding{p.schemaFinding(state)}
}

func (p *patient) schemaFinding(state migrations.State) finding {
	version := fmt.Sprintf("version %d of %d", state.Version, state.Latest)
	up := migrateUp(p.g.prefix)
	spring6 := state.Layout == dialect.Spring6
	if spring6 {
		up += " --layout spring6 (without --layout once no Spring before 7 shares the table)"
	}
	switch {
	case state.Dirty:
		return finding{
			broken, "schema", version + ": a step was left half done, by a program that is not sqllock",
			"every step may be repeated: drop " + state.Bookkeeping + ", then " + up,
		}
	case state.Version > state.Latest:
		return finding{noteworthy, "schema", version + ": it is from a later sqllock than this one", "use the later one"}
	case state.Layout == 0 && state.Version == 0:
		return finding{broken, "schema", "not created yet", up}
	case state.Layout == 0:
		return finding{broken, "schema", version + ", but there is no table", "drop " + state.Bookkeeping + ", then " + up}
	case state.Version == 0:
		return finding{noteworthy, "schema", "the table was not made by sqllock", up + " adopts it"}
	case state.Version == versionOfSpring6 && spring6, state.Version == state.Latest:
		return finding{fine, "schema", version, ""}
	default:
		return finding{noteworthy, "schema", version, up}
	}
}

// versionOfSpring6 is the last version whose table Spring before 7 can use.
const versionOfSpring6 = 2
