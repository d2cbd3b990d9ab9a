//go:build !linux

package server

import "os"

func roomiest() string { return os.TempDir() }
