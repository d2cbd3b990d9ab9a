package pqlock_test

import (
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/drivers/pqlock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

// TestOpen_WakeWithParametersOfPq has DSNs with which the connection that listens would go elsewhere than lib/pq, or with
// another key: that is noticed before anything connects.
func TestOpen_WakeWithParametersOfPq(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"port=1 user=u dbname=db hostaddr=127.0.0.1",
		"port=1 user=u dbname=db host=a,b hostaddr=127.0.0.1,127.0.0.2",
		"port=1 user=u dbname=db sslinline=true sslcert=c sslkey=k",
		"postgres://u:geheim@h:1/db?hostaddr=127.0.0.1",
		"POSTGRES://u:geheim@h:1/db?hostaddr=127.0.0.1",
	} {
		err := check.ErrorOf(pqlock.Open(t.Context(), dsn, &pqlock.Options{Wake: true}))
		check.Is(t, err, sqllock.ErrInvalid)
		check.Contains(t, err.Error(), "hostaddr (PGHOSTADDR) and sslinline")
		if strings.Contains(err.Error(), "geheim") {
			t.Error(err)
		}
	}
}
