package tests_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/sqllock/sqllock/adapters/certmagiclock"
	"github.com/sqllock/sqllock/sqllocktest"
)

// TestCertmagicGoesOnAfterALoss loses the lock while certmagic waits to try again, as an outage of
// the database does that lasts longer than a lease. certmagic acquires it once for all its tries.
func TestCertmagicGoesOnAfterALoss(t *testing.T) {
	t.Parallel()
	files := &certmagic.FileStorage{Path: t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		r := sqllocktest.New(t, nil)
		tries := 0
		authority := &issuer{func(context.Context) error {
			if tries++; tries > 1 {
				return nil
			}
			r.Lose("certmagic/issue_cert_example.com")
			return errors.New("try again")
		}}
		config, cache := newConfig(storage{files, certmagiclock.New(r.Registry, "certmagic/")}, authority)
		defer cache.Stop()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		must(t, config.ObtainCertAsync(ctx, "example.com"))
		if tries != 2 {
			t.Errorf("%d tries", tries)
		}
	})
}
