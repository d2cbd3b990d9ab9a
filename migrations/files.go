package migrations

import (
	"embed"
	"io"
	"strconv"
	"strings"

	"github.com/golang-migrate/migrate/v4/source"
	"github.com/golang-migrate/migrate/v4/source/iofs"
)

//go:embed postgres/*.sql mysql/*.sql sqlite/*.sql
var embedded embed.FS

// files are the embedded files of one database, with the prefix and the time-to-live
// filled in.
type files struct {
	source.Driver
	replacer *strings.Replacer
}

func newFiles(s settings) (*files, error) {
	plain, err := iofs.New(embedded, s.dialect.Name)
	if err != nil {
		return nil, err
	}
	return &files{plain, strings.NewReplacer(
		"{prefix}", s.lock.prefix(),
		"{unqualified}", s.lock.unqualified,
		"{ttl}", strconv.FormatInt(s.ttl.Microseconds(), 10),
	)}, nil
}

// ReadUp implements source.Driver.
func (f *files) ReadUp(version uint) (io.ReadCloser, string, error) {
	return f.filled(f.Driver.ReadUp(version))
}

// ReadDown implements source.Driver.
func (f *files) ReadDown(version uint) (io.ReadCloser, string, error) {
	return f.filled(f.Driver.ReadDown(version))
}

func (f *files) filled(file io.ReadCloser, identifier string, err error) (io.ReadCloser, string, error) {
	if err != nil {
		return nil, "", err
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, "", err
	}
	return io.NopCloser(strings.NewReader(f.replacer.Replace(string(text)))), identifier, file.Close()
}
