package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// A checkout is a working tree of git.
type checkout struct{ dir string }

func openCheckout(ctx context.Context, dir string) (checkout, error) {
	root, err := checkout{dir}.git(ctx, "rev-parse", "--show-toplevel")
	return checkout{root}, err
}

// git runs git in the checkout and returns its output without the last line break.
func (c checkout) git(ctx context.Context, args ...string) (string, error) {
	return command(ctx, c.dir, nil, "git", args...)
}

// commitTime returns the time of the commit. All files of a release have it, so that the same
// commit gives the same archives.
func (c checkout) commitTime(ctx context.Context) (time.Time, error) {
	text, err := c.git(ctx, "log", "-1", "--format=%ct")
	if err != nil {
		return time.Time{}, err
	}
	unix, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(unix, 0).UTC(), err
}

// releaseTag returns the tag v… of the commit, or "" if there is none or a file was changed.
func (c checkout) releaseTag(ctx context.Context) (string, error) {
	tags, err := c.git(ctx, "tag", "--points-at", "HEAD", "--list", "v*", "--sort=-version:refname")
	if err != nil {
		return "", err
	}
	changes, err := c.changes(ctx)
	if err != nil || changes != "" {
		return "", err
	}
	first, _, _ := strings.Cut(tags, "\n")
	return first, nil
}

// changes lists the files that differ from the commit, also those that git does not know.
func (c checkout) changes(ctx context.Context) (string, error) {
	return c.git(ctx, "status", "--porcelain")
}

// command runs a program and returns its output without the last line break.
func command(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimRight(string(out), "\n"), nil
}
