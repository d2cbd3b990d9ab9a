package session

import "path/filepath"

// Absolute makes the paths absolute that are relative to the directory of this process, which may change.
// Connectors call it: a pool makes connections as long as it is open. An empty path is no path.
func Absolute(paths ...*string) error {
	for _, path := range paths {
		if *path == "" || filepath.IsAbs(*path) {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	return nil
}
