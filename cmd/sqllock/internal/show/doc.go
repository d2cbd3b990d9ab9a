// Package show has the subcommands that show and remove rows of the lock table: list,
// describe, leader, unlock, cleanup and key.
package show
