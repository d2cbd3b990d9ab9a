// Package state knows the directory in which the command keeps the default database
// and the keys that this user has used.
package state

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// Directory returns the directory of this user's default database and keys. It may
// not exist yet.
func Directory() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "sqllock"), nil
	}
	if runtime.GOOS == "windows" {
		// Not the roaming profile, which is copied to other machines: locks must not be.
		if dir := os.Getenv("LocalAppData"); dir != "" {
			return filepath.Join(dir, "sqllock"), nil
		}
		return "", errors.New("%LocalAppData% is not set")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "sqllock"), nil
	}
	return filepath.Join(home, ".local", "state", "sqllock"), nil
}
