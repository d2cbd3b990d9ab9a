//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	modules "golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const (
	module   = "github.com/sqllock/sqllock"
	proxyDir = "/srv/goproxy"
	// unreleased is the version that the commit of this checkout has there. A tag of that name is
	// never published.
	unreleased = "v0.1.0"
)

// publish makes the commit of the checkout the latest version of the module for the users of the root.
func publish(ctx context.Context, r *root, checkout string) error {
	dir := filepath.Join(r.dir, proxyDir, module, "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	show := exec.CommandContext(ctx, "git", "show", "HEAD:go.mod")
	show.Dir = checkout
	mod, err := show.Output()
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"list":               unreleased + "\n",
		unreleased + ".info": fmt.Sprintf(`{"Version": %q, "Time": %q}`, unreleased, time.Now().UTC().Format(time.RFC3339)),
		unreleased + ".mod":  string(mod),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil { //nolint:gosec // users of the root read it
			return err
		}
	}
	file, err := os.Create(filepath.Join(dir, unreleased+".zip"))
	if err != nil {
		return err
	}
	err = zip.CreateFromVCS(file, modules.Version{Path: module, Version: unreleased}, checkout, "HEAD", "")
	return errors.Join(err, file.Close())
}
