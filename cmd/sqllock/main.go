// Command sqllock acquires, shows and removes locks in an SQL database, and creates the
// table of the locks. docs/cli.md describes it.
package main

import "github.com/sqllock/sqllock/cmd/sqllock/internal/cli"

func main() { cli.Main() }
