//go:build plan9

package systems
