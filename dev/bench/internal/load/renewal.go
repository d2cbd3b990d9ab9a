package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/dev/bench/internal/contender"
	"github.com/sqllock/sqllock/dev/bench/internal/parallel"
	"github.com/sqllock/sqllock/dev/bench/internal/record"
	"github.com/sqllock/sqllock/internal/locktable"
)

// renewal measures renewing ten thousand held leases: with one statement for all, and with one
// statement for each, several at a time.
func renewal() Load {
	return Load{Name: "renewal", Field: contender.Tables(), Run: func(ctx context.Context, a *Arena, c contender.Contender) (round record.Round, err error) {
		err = during(ctx, c, a.Place(c), func(session contender.Session) error {
			table, err := session.(contender.TableSession).Table(ctx)
			if err != nil {
				return err
			}
			defer table.DeleteClient(ctx) //nolint:errcheck // the next round uses another client
			claims, err := a.acquireAll(ctx, table)
			if err != nil {
				return err
			}
			round.Values, err = renew(ctx, table, claims)
			return err
		})
		return round, err
	}}
}

const leaseTime = time.Minute

func (a *Arena) acquireAll(ctx context.Context, table *locktable.Table) ([]locktable.Claim, error) {
	claims := make([]locktable.Claim, a.Settings.Leases)
	return claims, parallel.Do(len(claims), atOnce, func(i int) error {
		claims[i] = locktable.Claim{LockKey: fmt.Sprintf("renewal-%d", i), Holder: table.NewHolder(), TTL: leaseTime}
		_, err := table.Acquire(ctx, claims[i])
		return err
	})
}

var errNotRenewed = errors.New("a lease was not renewed")

func renew(ctx context.Context, table *locktable.Table, claims []locktable.Claim) (map[string]float64, error) {
	began := time.Now()
	outcomes, err := table.RenewAll(ctx, claims)
	together := time.Since(began)
	for _, outcome := range outcomes {
		if outcome != locktable.Renewed {
			err = errors.Join(err, errNotRenewed)
			break
		}
	}
	began = time.Now()
	err = errors.Join(err, parallel.Do(len(claims), atOnce, func(i int) error {
		renewed, err := table.Renew(ctx, claims[i], locktable.PinnedTimeout, nil)
		if !renewed && err == nil {
			return errNotRenewed
		}
		return err
	}))
	each := time.Since(began)
	return map[string]float64{"together_ms": millis(together), "each_ms": millis(each), "leases": float64(len(claims))}, err
}
