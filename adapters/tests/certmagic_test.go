package tests_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/sqllock/sqllock/adapters/certmagiclock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/sqllocktest"
)

// A storage has files for certificates, and the locks of a registry.
type storage struct {
	certmagic.Storage // for certificates; it has a Lock and an Unlock, too
	locks             *certmagiclock.Locker
}

func (s storage) Lock(ctx context.Context, name string) error { return s.locks.Lock(ctx, name) }

func (s storage) TryLock(ctx context.Context, name string) (bool, error) {
	return s.locks.TryLock(ctx, name)
}

func (s storage) Unlock(ctx context.Context, name string) error { return s.locks.Unlock(ctx, name) }

func (s storage) RenewLockLease(ctx context.Context, name string, d time.Duration) error {
	return s.locks.RenewLockLease(ctx, name, d)
}

// An issuer signs what it is given, after its work.
type issuer struct{ work func(context.Context) error }

func (i *issuer) IssuerKey() string { return "test" }

func (i *issuer) Issue(ctx context.Context, csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	if err := i.work(ctx); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: csr.DNSNames, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, csr.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

// newConfig returns certmagic's configuration of one instance, and its cache, which has to be stopped.
func newConfig(storage certmagic.Storage, issuer certmagic.Issuer) (config *certmagic.Config, cache *certmagic.Cache) {
	cache = certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return config, nil },
		Logger:           zap.NewNop(),
	})
	config = certmagic.New(cache, certmagic.Config{
		Storage: storage, Issuers: []certmagic.Issuer{issuer}, Logger: zap.NewNop(), DisableStorageCheck: true,
	})
	return config, cache
}

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
		check.Equal(t, "tries", tries, 2)
	})
}
