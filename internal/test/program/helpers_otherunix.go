//go:build unix && !linux

package program

func addSystemHelpers(map[string]func()) {}
