package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
)

// StartMySQLRouter starts a MySQL Router in front of the MySQL of a DSN, with its files in dir. It is downloaded once from
// Debian's suite sid. Clients share the server's sessions: one that is idle goes to any client at once, with the variables
// that this client has set. That needs TLS, so that the Router knows the password.
func StartMySQLRouter(ctx context.Context, dir, dsn string) (*Server, error) {
	root, err := fromDebian(ctx, "sid", "", "mysql-router")
	if err != nil {
		return nil, fmt.Errorf("find MySQL Router: %w", err)
	}
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	certificate, key, err := selfSigned()
	if err != nil {
		return nil, err
	}
	libraries := filepath.Join(root, "usr/lib")
	return Start(ctx, Recipe{
		Name:   "mysqlrouter",
		Driver: "mysql",
		Files: func(port int) map[string]string {
			return map[string]string{
				"certificate.pem": certificate, "key.pem": key,
				"router.conf": strings.NewReplacer("{dir}", dir, "{plugins}", filepath.Join(libraries, "mysqlrouter/plugin"),
					"{port}", fmt.Sprint(port), "{server}", config.Addr).Replace(routerSettings),
			}
		},
		Serve: func(dir string, _ int) []string {
			return []string{
				filepath.Join(root, "usr/lib64/ld-linux-x86-64.so.2"),
				"--library-path", filepath.Join(libraries, "x86_64-linux-gnu") + ":" + filepath.Join(libraries, "mysql-router"),
				filepath.Join(root, "usr/bin/mysqlrouter"), "-c", filepath.Join(dir, "router.conf"),
			}
		},
		DSN: func(port int) string {
			through := config.Clone()
			through.Addr, through.TLSConfig = fmt.Sprint("127.0.0.1:", port), "skip-verify"
			return through.FormatDSN()
		},
		Quit:     syscall.SIGTERM,
		Orphaned: syscall.SIGKILL,
	}, dir)
}

const routerSettings = `[DEFAULT]
logging_folder={dir}
runtime_folder={dir}
data_folder={dir}
plugin_folder={plugins}
[connection_pool]
max_idle_server_connections=64
[routing:shared]
bind_address=127.0.0.1
bind_port={port}
destinations={server}
routing_strategy=first-available
protocol=classic
client_ssl_mode=PREFERRED
client_ssl_cert={dir}/certificate.pem
client_ssl_key={dir}/key.pem
server_ssl_mode=PREFERRED
connection_sharing=1
connection_sharing_delay=0
`

// selfSigned returns a certificate, and its key, in PEM.
func selfSigned() (certificate, key string, err error) {
	made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &made.PublicKey, made)
	if err != nil {
		return "", "", err
	}
	private, err := x509.MarshalPKCS8PrivateKey(made)
	if err != nil {
		return "", "", err
	}
	in := func(kind string, bytes []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
	}
	return in("CERTIFICATE", signed), in("PRIVATE KEY", private), nil
}
