// Command release makes what a release consists of.
//
//	release build [-out DIR] [-targets linux/amd64,…]   builds binaries, archives, packages, SBOMs and checksums
//	release pages [-out DIR]                            writes the man pages and completions
//	release tag [-write]                                shows which tags are due, or makes them; see modules.txt
//
// It runs in a checkout, and writes to DIR alone (default: dist in the root of the checkout).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		stop()
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: release build|pages|tag; see main.go")

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	git, err := openCheckout(ctx, ".")
	if err != nil {
		return err
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	out := flags.String("out", filepath.Join(git.dir, "dist"), "the directory that is written")
	targets := flags.String("targets", strings.Join(allTargets, ","), "the systems to build for")
	write := flags.Bool("write", false, "make the tags")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "build":
		return buildAll(ctx, git, *out, strings.Split(*targets, ","))
	case "pages":
		when, err := git.commitTime(ctx)
		if err != nil {
			return err
		}
		return writePages(*out, when) //nolint:contextcheck // it describes commands and runs none
	case "tag":
		return tag(ctx, os.Stdout, git, *write)
	default:
		return errUsage
	}
}
