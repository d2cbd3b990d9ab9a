package tests_test

import (
	"context"
	"crypto/x509"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/sqllock/sqllock/certmagiclock"
	"github.com/sqllock/sqllock/sqllocktest"
)

// A failingIssuer fails once, and then issues.
type failingIssuer struct {
	issuer
	fail func() error
}

func (i *failingIssuer) Issue(ctx context.Context, csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	if fail := i.fail; fail != nil {
		i.fail = nil
		return nil, fail()
	}
	return i.issuer.Issue(ctx, csr)
}

// TestCertmagicGoesOnAfterALoss loses the lock while certmagic waits to try again, as an outage of
// the database does that lasts longer than a lease. certmagic acquires it once for all its tries.
func TestCertmagicGoesOnAfterALoss(t *testing.T) {
	t.Parallel()
	files := &certmagic.FileStorage{Path: t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		r := sqllocktest.New(t, nil)
		authority := &failingIssuer{issuer: issuer{TB: t}, fail: func() error {
			r.Lose("certmagic/issue_cert_example.com")
			return errors.New("try again")
		}}
		locks := certmagiclock.New(r.Registry, "certmagic/")
		config := newConfig(t, storage{files, locks}, authority)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		must(t, config.ObtainCertAsync(ctx, "example.com"))
		if n := authority.issued.Load(); n != 1 {
			t.Errorf("%d certificates", n)
		}
	})
}
