package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/bench/internal/contender"
	"github.com/sqllock/sqllock/bench/internal/record"
)

// renewal is to renew ten thousand held leases: all by one statement, and each
// by its own, some of these at a time.
func renewal() Load {
	return Load{Name: "renewal", Field: contender.Repositories(), Run: func(ctx context.Context, a *Arena, c contender.Contender) (round record.Round, err error) {
		err = during(ctx, c, a.Place(c), func(session contender.Session) error {
			repository := session.(contender.Repository).Repository()
			defer repository.Close(ctx) //nolint:errcheck // the next round has another client
			rows, err := a.acquireAll(ctx, repository)
			if err != nil {
				return err
			}
			round.Values, err = renew(ctx, repository, rows)
			return err
		})
		return round, err
	}}
}

const leaseTime = time.Minute

func (a *Arena) acquireAll(ctx context.Context, repository *sqllock.Repository) ([]sqllock.Ownership, error) {
	rows := make([]sqllock.Ownership, a.Settings.Leases)
	errs := make([]error, len(rows))
	inParallel(len(rows), func(i int) {
		rows[i] = sqllock.Ownership{Key: fmt.Sprintf("renewal-%d", i), Holder: repository.NewHolder()}
		_, errs[i] = repository.Acquire(ctx, rows[i].Key, rows[i].Holder, leaseTime)
	})
	return rows, errors.Join(errs...)
}

var errNotRenewed = errors.New("a lease was not renewed")

func renew(ctx context.Context, repository *sqllock.Repository, rows []sqllock.Ownership) (map[string]float64, error) {
	began := time.Now()
	renewals, err := repository.RenewAll(ctx, rows, leaseTime)
	together := time.Since(began)
	for _, renewal := range renewals {
		if renewal != sqllock.Renewed {
			err = errors.Join(err, errNotRenewed)
			break
		}
	}
	errs := make([]error, len(rows))
	began = time.Now()
	inParallel(len(rows), func(i int) {
		renewed, err := repository.Renew(ctx, rows[i].Key, rows[i].Holder, leaseTime)
		if errs[i] = err; !renewed && err == nil {
			errs[i] = errNotRenewed
		}
	})
	each := time.Since(began)
	return map[string]float64{"together_ms": millis(together), "each_ms": millis(each), "leases": float64(len(rows))},
		errors.Join(err, errors.Join(errs...))
}
