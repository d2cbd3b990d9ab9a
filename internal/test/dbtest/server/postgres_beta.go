package server

import (
	"context"
	"fmt"
	"path/filepath"
)

// betaVersion is the major version of PostgreSQL that has betas and release candidates now.
const betaVersion = "19"

// StartPostgresBeta starts a beta or a release candidate of PostgreSQL's next major version, which is downloaded once
// from Debian's suite experimental into the user's cache. The suite has one for a part of the year. Otherwise it is
// like [StartPostgres].
func StartPostgresBeta(ctx context.Context, dir string) (*Server, error) {
	const bin = "usr/lib/postgresql/" + betaVersion + "/bin/"
	root, err := fromDebian(ctx, "experimental sid", bin+"postgres "+bin+"initdb", "postgresql-"+betaVersion)
	if err != nil {
		return nil, fmt.Errorf("find PostgreSQL's beta: %w", err)
	}
	if root, err = reachable(dir, root); err != nil {
		return nil, err
	}
	beta := postgres(filepath.Join(root, bin))
	beta.Name = PostgresBeta
	return Start(ctx, beta, dir)
}
