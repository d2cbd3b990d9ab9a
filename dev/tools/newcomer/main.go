//go:build linux

// Newcomer does what new users do, with the commands of the documents as they are written there,
// in a fresh Debian that has Go, git and make and nothing of sqllock, and prints how long each
// command takes. `make newcomer` runs it.
//
//   - docs/start.md on each database, every time with empty caches
//   - the .deb, with completion in bash and the man pages
//   - CONTRIBUTING.md: a clone, a test that fails, a change, and the tests of everything
//
// The servers are those of SQLLOCK_TEST_POSTGRES, SQLLOCK_TEST_MYSQL and SQLLOCK_TEST_ORACLE_MYSQL. Those
// that are not set are left out. sqllock itself comes from this checkout's commit, over a GOPROXY of
// files; other modules come over the network, as they do for a new user.
//
// It needs root and Debian. debootstrap makes the other Debian, once, in the user's cache; each run
// uses a copy, whose mounts end with each command. It exits with 1 if a command fails, or prints
// something else than the documents say.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "newcomer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	cache, _ := os.UserCacheDir()
	checkout := flag.String("dir", "../..", "the root `directory` of the checkout")
	debian := flag.String("debian", filepath.Join(cache, "sqllock-newcomer", "bookworm"), "the `directory` of the fresh Debian; made if it is missing")
	only := flag.String("run", "", "do only the parts that match this `expression`: start, package, contribution")
	flag.Parse()
	matching, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	if *checkout, err = filepath.Abs(*checkout); err != nil {
		return err
	}
	r, err := newRoot(ctx, *debian)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.dir)) }()
	for _, part := range []struct {
		name string
		do   func(context.Context, *root, string) error
	}{{"start", startEverywhere}, {"package", installPackage}, {"contribution", contribute}} {
		if !matching.MatchString(part.name) {
			continue
		}
		if err := part.do(ctx, r, *checkout); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}
