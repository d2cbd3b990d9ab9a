package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the two formats
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// writePackages writes a .deb and an .rpm.
func (b binary) writePackages(out string) error {
	for _, format := range []string{"deb", "rpm"} {
		if err := b.writePackage(out, format); err != nil {
			return err
		}
	}
	return nil
}

func (b binary) writePackage(out, format string) error {
	contents, err := b.contents(format)
	if err != nil {
		return err
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "sqllock", Arch: b.arch, Platform: "linux", Version: b.version, VersionSchema: "semver",
		Section: "database", Priority: "optional", Maintainer: "The sqllock authors <sqllock@users.noreply.github.com>",
		Description: "distributed locks in an SQL database\n" +
			"Runs commands under a lock in PostgreSQL, MySQL, MariaDB or SQLite, and shows who holds which lock.",
		Homepage: "https://github.com/sqllock/sqllock", License: "Apache-2.0", MTime: b.when,
		// Not the name of this machine: the same commit gives the same package.
		Overridables: nfpm.Overridables{Contents: contents, Suggests: []string{"bash-completion"}, RPM: nfpm.RPM{BuildHost: "sqllock"}},
	})
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(out, packager.ConventionalFileName(info)))
	if err != nil {
		return err
	}
	return errors.Join(packager.Package(info, file), file.Close())
}

// contents lists the files that a package installs.
func (b binary) contents(format string) (files.Contents, error) {
	zsh := "/usr/share/zsh/vendor-completions/_sqllock"
	if format == "rpm" {
		zsh = "/usr/share/zsh/site-functions/_sqllock"
	}
	all := files.Contents{
		b.file(b.path, "/usr/bin/sqllock", 0o755),
		b.file(filepath.Join(b.root, "LICENSE"), "/usr/share/doc/sqllock/copyright", 0o644),
		b.file(filepath.Join(b.pages, bashCompletion), "/usr/share/bash-completion/completions/sqllock", 0o644),
		b.file(filepath.Join(b.pages, zshCompletion), zsh, 0o644),
		b.file(filepath.Join(b.pages, fishCompletion), "/usr/share/fish/vendor_completions.d/sqllock.fish", 0o644),
	}
	pages, err := filepath.Glob(filepath.Join(b.pages, manDir, "*.1"))
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		if err := gzipped(page); err != nil {
			return nil, err
		}
		all = append(all, b.file(page+".gz", "/usr/share/man/man1/"+filepath.Base(page)+".gz", 0o644))
	}
	return all, nil
}

func (b binary) file(source, destination string, mode os.FileMode) *files.Content {
	return &files.Content{Source: source, Destination: destination, FileInfo: &files.ContentFileInfo{Mode: mode, MTime: b.when}}
}

// gzipped writes path.gz, without a time in it.
func gzipped(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var zipped bytes.Buffer
	w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(path+".gz", zipped.Bytes(), 0o644)
}
