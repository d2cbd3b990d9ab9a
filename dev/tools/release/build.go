package main

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

var allTargets = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// A binary is the command, built for one system.
type binary struct {
	system, arch string
	path         string
	info         *buildinfo.BuildInfo
	version      string // without the v
	when         time.Time
	pages        string // the directory of man pages and completions
	root         string // the directory of LICENSE and README.md
}

// name is the name of the program.
func (b binary) name() string {
	if b.system == "windows" {
		return "sqllock.exe"
	}
	return "sqllock"
}

// base is what the names of its files begin with.
func (b binary) base() string { return fmt.Sprintf("sqllock_%s_%s_%s", b.version, b.system, b.arch) }

// buildAll writes all files of a release to out, which it empties first.
func buildAll(ctx context.Context, git checkout, out string, targets []string) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	when, err := git.commitTime(ctx)
	if err != nil {
		return err
	}
	parts, err := os.MkdirTemp("", "sqllock-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(parts) }()
	if err := writePages(parts, when); err != nil { //nolint:contextcheck // it describes commands and runs none
		return err
	}
	for _, target := range targets {
		b, err := compile(ctx, git, parts, target)
		if err != nil {
			return err
		}
		b.when, b.pages, b.root = when, parts, git.dir
		if err := b.writeFiles(out); err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		fmt.Println(target, b.info.Main.Version)
	}
	return writeChecksums(out)
}

// compile builds the command without cgo and without the paths of this machine.
func compile(ctx context.Context, git checkout, dir, target string) (binary, error) {
	if !slices.Contains(allTargets, target) {
		return binary{}, fmt.Errorf("target %q: it must be one of %s", target, strings.Join(allTargets, ", "))
	}
	system, arch, _ := strings.Cut(target, "/")
	release, err := git.releaseTag(ctx)
	if err != nil {
		return binary{}, err
	}
	b := binary{system: system, arch: arch, path: filepath.Join(dir, system+"_"+arch)}
	// -buildvcs: the commit is recorded even where GOFLAGS says otherwise.
	_, err = command(ctx, git.dir, []string{"CGO_ENABLED=0", "GOOS=" + system, "GOARCH=" + arch}, "go", "build", "-trimpath", "-buildvcs=true",
		"-ldflags=-s -w -X github.com/sqllock/sqllock/cmd/sqllock/internal/cli.release="+release, "-o", b.path, "./cmd/sqllock")
	if err != nil {
		return b, err
	}
	if b.info, err = buildinfo.ReadFile(b.path); err != nil {
		return b, err
	}
	if release != "" {
		b.info.Main.Version = release
	}
	b.version = strings.TrimPrefix(b.info.Main.Version, "v")
	return b, nil
}

// writeFiles writes the archive, the SBOM and, for Linux, the packages.
func (b binary) writeFiles(out string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if err := b.writeArchive(out); err != nil {
		return err
	}
	if err := b.writeSBOM(out); err != nil {
		return err
	}
	if b.system != "linux" {
		return nil
	}
	return b.writePackages(out)
}

// writeChecksums writes the SHA-256 of all files of a directory, as sha256sum --check reads them.
func writeChecksums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(content), entry.Name())
	}
	return os.WriteFile(filepath.Join(dir, "checksums.txt"), []byte(text.String()), 0o644)
}
