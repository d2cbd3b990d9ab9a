package pqdriver

import (
	"path/filepath"
	"testing"

	"github.com/lib/pq"

	"github.com/sqllock/sqllock/internal/test/check"
)

// The driver reads certificates and passwords for each connection, when the process may be in another directory.
func TestFilesDoNotDependOnTheDirectory(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string][4]bool{ // which are made absolute
		"host=a sslcert=c.pem sslkey=k.pem sslrootcert=r.pem passfile=p": {true, true, true, true},
		"host=a sslrootcert=system":                                      {},
		"host=a sslinline=true sslcert=c sslkey=k sslrootcert=r":         {},
	} {
		config := check.Value(pq.NewConfig(dsn))(t)
		config.Passfile = map[bool]string{true: config.Passfile}[want[3]] // else that of the user
		check.Must(t, resolve(&config))
		for i, path := range []string{config.SSLCert, config.SSLKey, config.SSLRootCert, config.Passfile} {
			check.Equal(t, dsn+": "+path+" is absolute", filepath.IsAbs(path), want[i])
		}
	}
}
