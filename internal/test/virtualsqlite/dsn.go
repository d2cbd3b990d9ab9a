package virtualsqlite

import (
	"net/url"
	"path/filepath"
)

// DSN returns the DSN of a file: WAL mode, and a busy_timeout of ten seconds. The file need not
// survive a crash of the machine. The driver "sqlite" takes it, too.
func DSN(path string) string {
	file := url.URL{
		Scheme: "file",
		Opaque: (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath(),
		RawQuery: url.Values{"_pragma": {
			"busy_timeout(10000)",
			"journal_mode(WAL)",
			"synchronous(OFF)",
		}}.Encode(),
	}
	return file.String()
}
