//go:build !unix

package program

func helpers(func()) map[string]func() { return map[string]func(){} }

func startAgain() {}

func catchIgnored() {}
