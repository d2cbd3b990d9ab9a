package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// stateDirectory returns where this user's default database and names are kept.
// It need not exist.
func stateDirectory() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "sqllock"), nil
	}
	if runtime.GOOS == "windows" {
		// Roaming profiles travel between machines; locks must not.
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
