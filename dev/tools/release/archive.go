package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// A member is a file of an archive.
type member struct {
	path, source string
	mode         os.FileMode
}

// members lists what an archive holds, in a fixed order.
func (b binary) members() ([]member, error) {
	all := []member{{b.name(), b.path, 0o755}}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		all = append(all, member{name, filepath.Join(b.root, name), 0o644})
	}
	for _, name := range []string{bashCompletion, zshCompletion, fishCompletion, powershell} {
		all = append(all, member{name, filepath.Join(b.pages, name), 0o644})
	}
	pages, err := filepath.Glob(filepath.Join(b.pages, manDir, "*.1"))
	for _, page := range pages {
		all = append(all, member{manDir + "/" + filepath.Base(page), page, 0o644})
	}
	return all, err
}

// writeArchive writes a .zip for Windows and a .tar.gz for other systems.
func (b binary) writeArchive(out string) error {
	members, err := b.members()
	if err != nil {
		return err
	}
	extension, write := ".tar.gz", b.writeTar
	if b.system == "windows" {
		extension, write = ".zip", b.writeZip
	}
	file, err := os.Create(filepath.Join(out, b.base()+extension))
	if err != nil {
		return err
	}
	return errors.Join(write(file, members), file.Close())
}

func (b binary) writeTar(w io.Writer, members []member) error {
	zipped, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(zipped)
	for _, m := range members {
		content, err := os.ReadFile(m.source)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: b.base() + "/" + m.path, Mode: int64(m.mode), Size: int64(len(content)), ModTime: b.when}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(content); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), zipped.Close())
}

func (b binary) writeZip(w io.Writer, members []member) error {
	archive := zip.NewWriter(w)
	for _, m := range members {
		content, err := os.ReadFile(m.source)
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: b.base() + "/" + m.path, Method: zip.Deflate, Modified: b.when}
		header.SetMode(m.mode)
		file, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := file.Write(content); err != nil {
			return err
		}
	}
	return archive.Close()
}
